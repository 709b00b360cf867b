// Tells a past participle from other words, as far as a list and an ending can.

const irregular = new Set(
  `been become begun bent bet bid bitten bled blown borne bought bound bred broadcast broken brought
  built burst cast caught chosen come cost cut dealt done drawn driven dug eaten fallen fed felt
  fled flown forecast forgiven forgotten fought found frozen given gone got gotten ground grown had
  heard held hidden hit hung hurt kept known laid lain led left lent let lit lost made meant met
  mistaken offset outbid outrun overdrawn overridden overrun oversold overtaken overwritten paid
  prepaid put quit read rebuilt redone redrawn remade repaid reread rerun resent reset resold
  restarted retaken rewritten ridden risen rung run said sat seen sent set sewn shaken shed shot
  shown shrunk shut slept slid sold sought sped spent split spoken spread sprung spun stolen stood
  struck stuck sung sunk swept sworn swum swung taken taught thought thrown told torn undergone
  understood undertaken undone unpaid unset upheld upset withdrawn withheld woken won worn wound
  woven written`.split(/\s+/),
);

/** Words in -eed are mostly not in the past: succeed, exceed, need; these are. */
const pastInEed = new Set(['agreed', 'decreed', 'disagreed', 'freed', 'guaranteed', 'refereed']);
const otherInEd = new Set(['bed', 'embed', 'red', 'sled', 'wed']);

const irregularOf: Readonly<Record<string, string>> = {
  begin: 'begun',
  break: 'broken',
  build: 'built',
  buy: 'bought',
  choose: 'chosen',
  do: 'done',
  draw: 'drawn',
  find: 'found',
  freeze: 'frozen',
  give: 'given',
  hold: 'held',
  keep: 'kept',
  leave: 'left',
  lose: 'lost',
  make: 'made',
  meet: 'met',
  pay: 'paid',
  rebuild: 'rebuilt',
  repay: 'repaid',
  sell: 'sold',
  send: 'sent',
  show: 'shown',
  spend: 'spent',
  take: 'taken',
  win: 'won',
  withdraw: 'withdrawn',
  write: 'written',
};

/** Verbs that events are often made of; only these are turned into the past, the rest is a guess. */
const regularVerbs = new Set(
  `abort accept acknowledge activate add adjust allocate apply approve archive assign attach authorize
  block calculate cancel capture change charge check claim clear close collect complete compose
  confirm consume convert correct create credit deactivate debit decline deduct delete deliver deny
  deploy detach disable dispatch display drop enable end enqueue enter enrol exceed expire export fail
  fetch fill finish fix flag fulfill generate grant handle import increase initiate insert install
  invite invoice issue join launch link load lock log login map mark match merge migrate modify move
  notify offer open order park parse patch pause pick place plan post prepare print process promote
  propose provision publish purchase push queue raise reach receive reconcile record redeem refresh
  refund register reject release remind remove rename renew reopen replace replay report request
  require reschedule reserve resolve restart restore resume retire retry return reverse review revoke
  rotate save schedule scan settle ship sign skip start stop store submit subscribe succeed suspend
  sync tag terminate transfer trigger unblock unlink unlock unsubscribe update upgrade upload validate
  verify view void`.split(/\s+/),
);

const doubled: Readonly<Record<string, string>> = {
  drop: 'dropped',
  map: 'mapped',
  plan: 'planned',
  scan: 'scanned',
  ship: 'shipped',
  skip: 'skipped',
  stop: 'stopped',
  submit: 'submitted',
  tag: 'tagged',
  transfer: 'transferred',
  log: 'logged',
  login: 'logged-in',
  cancel: 'cancelled',
};

/** The verb may come last (`tags-parsed`) or first (`failed-permanently`). */
export function isPastTense(action: string): boolean {
  const words = action.split('-');
  return [words.at(-1), words[0]].some((word) => word !== undefined && isParticiple(word));
}

/** The action with its verb in the past, for verbs that are known; otherwise `undefined`. */
export function toPastTense(action: string): string | undefined {
  const words = action.split('-');
  for (const index of [words.length - 1, 0]) {
    const past = participleOf(words[index] ?? '');
    if (past !== undefined) return words.with(index, past).join('-');
  }
  return undefined;
}

function isParticiple(word: string): boolean {
  if (irregular.has(word) || pastInEed.has(word)) return true;
  return word.endsWith('ed') && !word.endsWith('eed') && !otherInEd.has(word);
}

function participleOf(word: string): string | undefined {
  const stem = word.endsWith('ing') ? word.slice(0, -3) : word;
  for (const verb of [word, stem, `${stem}e`, stem.slice(0, -1)]) {
    const past = irregularOf[verb] ?? doubled[verb];
    if (past !== undefined) return past;
    if (regularVerbs.has(verb)) return regularPast(verb);
  }
  return undefined;
}

function regularPast(verb: string): string {
  if (verb.endsWith('e')) return `${verb}d`;
  return /[^aeiou]y$/.test(verb) ? `${verb.slice(0, -1)}ied` : `${verb}ed`;
}
