// What must not be in a log: secrets and what tells about a person, found by the names of fields and by
// what secrets look like inside of texts.

export interface Redaction {
  /** Whether the value of this key is left out. */
  hides(key: string, value: unknown): boolean;
  text(text: string): string;
}

export const redacted = '[redacted]';

/** Anywhere in a key's name, whatever its case and separators. */
const secretNames = [
  'authorization',
  'cookie',
  'credential',
  'passphrase',
  'password',
  'passwd',
  'secret',
  'token',
  'apikey',
  'privatekey',
];
const personalNames = ['email', 'phone', 'firstname', 'lastname', 'fullname', 'birth', 'iban'];
/** Whole names only: `dataSource` and `userId` stay. */
const wholeNames = ['payload', 'body', 'user', 'recipient', 'ssn'];

/** The names of fields are few; keys of data that somebody logs are not. */
const keysMax = 1_000;

export function createRedaction(more: readonly string[] = []): Redaction {
  const secrets = new RegExp(secretNames.join('|'));
  const personal = new RegExp([...personalNames, ...more.map(plain)].map(escapeRegExp).join('|'));
  const whole = new Set(wholeNames);
  const known = new Map<string, 'hidden' | 'hidden if a text' | 'shown'>();

  function judge(key: string): 'hidden' | 'hidden if a text' | 'shown' {
    const before = known.get(key);
    if (before !== undefined) return before;
    const name = plain(key);
    const isSecret = secrets.test(name) || whole.has(name);
    const found = personal.test(name) ? 'hidden' : isSecret ? 'hidden if a text' : 'shown';
    if (known.size < keysMax) known.set(key, found);
    return found;
  }

  return {
    hides(key, value) {
      if (value === undefined || value === null) return false;
      const judged = judge(key);
      if (judged !== 'hidden if a text') return judged === 'hidden';
      // A number is a fencing token or a count; what is secret is a text, or holds one.
      return typeof value !== 'number' && typeof value !== 'boolean';
    },
    text: redactText,
  };
}

/** Credentials in URLs and headers, our own tokens, addresses of mail. */
function redactText(text: string): string {
  // Most texts are names and ids: one look instead of five.
  if (!/[@=]|bearer|basic|mr_|whsec_|xox/i.test(text)) return text;
  return text
    .replaceAll(/([a-z][a-z0-9+.-]{0,30}:\/\/)[^\s/?#]{1,500}@/gi, `$1${redacted}@`)
    .replaceAll(
      /([?&][^=&\s]{0,50}(?:password|secret|token|key|signature)[^=&\s]{0,50}=)[^&\s]+/gi,
      `$1${redacted}`,
    )
    .replaceAll(/\b(bearer|basic)\s+[\w.~+/=-]{8,}/gi, `$1 ${redacted}`)
    .replaceAll(/\b(?:mr_[0-9a-f]{32}_|whsec_|xox[a-z]-)[\w-]+/g, redacted)
    .replaceAll(/[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+/g, redacted);
}

function plain(key: string): string {
  return key.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
}

function escapeRegExp(text: string): string {
  return text.replaceAll(/[^a-z0-9]/g, String.raw`\$&`);
}
