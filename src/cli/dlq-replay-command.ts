// `millrace dlq replay`: asks the process that runs the failed handler to try again, and waits for it
// where that is wanted.

import { systemClock } from '../foundation/clock.ts';
import { filterText } from '../platform/audit-log.ts';
import type { DeadLetterFilter } from '../subscriptions/dead-letter.ts';
import { workersOf } from '../subscriptions/subscription-overview.ts';
import type { SubscriptionStorage } from '../subscriptions/subscription-storage.ts';
import { exitCodes, readArgs, usage, type Command } from './command.ts';
import { onRecord } from './on-record.ts';
import { chosenLetters, letterFilterOptions } from './letter-filter-options.ts';
import { askedBy, byOption, openSubscriptions } from './open-subscriptions.ts';
import { durationSeconds } from './option-values.ts';
import { createProgress } from './progress.ts';
import { grouped, progressBar } from './progress-bar.ts';
import { jsonOption, storeOption, storeSections } from './store-option.ts';

const name = 'dlq replay';
const pollMs = 100;
const pageSize = 500;

const options = {
  ...storeOption,
  ...letterFilterOptions,
  all: { type: 'boolean', summary: 'all that are pending' },
  yes: { type: 'boolean', summary: 'says that several are meant' },
  wait: { type: 'boolean', summary: 'until each has succeeded or failed again' },
  timeout: { type: 'string', value: 'time', summary: 'with --wait: no longer than 90s, 15m, …' },
  ...byOption,
  ...jsonOption,
} as const;

interface Outcome {
  readonly requested: number;
  readonly replayed?: number;
  readonly failed?: number;
  /** Not tried yet when the time was over. */
  readonly left?: number;
}

export const dlqReplayCommand: Command = {
  name,
  summary: 'lets the failed handler try again, and no other',
  usage: `${name} (<id>… | --all | <filter>) [--yes] [--wait]`,
  options,
  examples: [
    `millrace ${name} 01932f0c-6f2e-7c3a-9b1d-2f6a1c0e5d77 --wait`,
    `millrace ${name} --subscription sub:notify:greetings:v1 --since 12h --yes`,
    `millrace ${name} --all --yes --wait --timeout 5m --json`,
  ],
  sections: storeSections,
  async run(context) {
    const { stdout, stderr, signal, paint } = context;
    const { values, positionals: ids } = readArgs({ name, args: context.args }, options);
    const filter = chosenLetters({ command: name, ids }, values, Date.now());
    if (ids.length === 0 && values.yes !== true) {
      throw usage('several handlers may run again: pass --yes if that is meant');
    }
    if (values.timeout !== undefined && values.wait !== true) {
      throw usage('--timeout goes with --wait');
    }
    const timeoutMs =
      values.timeout === undefined
        ? Number.POSITIVE_INFINITY
        : durationSeconds('timeout', values.timeout) * 1_000;
    await using subscriptions = await openSubscriptions(context, values.store);
    const { admin, storage, store } = subscriptions;
    const by = askedBy(context, values.by);
    const target = ids.length === 1 ? String(ids[0]) : filterText(filter);
    const deed = { action: 'dead-letter.replay', target };
    if (values.wait !== true) {
      const requested = await onRecord(store, deed, async () => {
        if (ids.length === 0) return admin.replayAll(filter, { by });
        // One that is not there, or not pending, is told by name.
        for (const id of ids) await admin.replay(id, { by });
        return ids.length;
      });
      return say({ requested });
    }
    const chosen = ids.length > 0 ? ids : await pendingIds(storage, filter);
    await onRecord(store, deed, async () => {
      for (const page of pagesOf(chosen)) {
        if (ids.length > 0) for (const id of page) await admin.replay(id, { by });
        else await admin.replayAll({ ids: page }, { by });
      }
    });
    await warnIfStopped(chosen[0]);
    return say(await wait(chosen));

    /** Counted over all pages: a letter that fails again is pending, and not asked for any more. */
    async function count(over: readonly string[], more: DeadLetterFilter): Promise<number> {
      let sum = 0;
      for (const page of pagesOf(over)) {
        sum += await storage.deadLetters.count({ ids: page, ...more });
      }
      return sum;
    }

    async function wait(over: readonly string[]): Promise<Outcome> {
      const progress = createProgress(stderr);
      const endMs = performance.now() + timeoutMs;
      const requested = over.length;
      try {
        for (;;) {
          const left = await count(over, { status: 'pending', replayRequested: true });
          const text = `${grouped(requested - left)} of ${grouped(requested)}`;
          progress.show(progressBar(requested === 0 ? 1 : (requested - left) / requested, text));
          if (left === 0 || performance.now() >= endMs) {
            const replayed = await count(over, { status: 'replayed' });
            const failed = await count(over, { status: 'pending', replayRequested: false });
            return { requested, replayed, failed, left };
          }
          await systemClock.sleep(pollMs, signal);
        }
      } finally {
        progress.clear();
      }
    }

    async function warnIfStopped(id: string | undefined): Promise<void> {
      if (id === undefined) return;
      const { handler } = await admin.letter(id);
      if ((await workersOf(storage, handler)) > 0) return;
      stderr.write(`no process runs ${handler} now: it is tried when one does\n`);
    }

    function say(outcome: Outcome): number {
      const { requested, replayed = 0, failed = 0, left = 0 } = outcome;
      const rest = [
        ...(failed > 0 ? [`${grouped(failed)} failed again`] : []),
        ...(left > 0 ? [`${grouped(left)} not tried yet`] : []),
      ];
      const done =
        outcome.replayed === undefined
          ? `${paint.green('asked for')} ${grouped(requested)}`
          : [`${paint.green('replayed')} ${grouped(replayed)}`, ...rest].join(', ');
      stdout.write(values.json === true ? `${JSON.stringify(outcome)}\n` : `${done}\n`);
      return failed > 0 || left > 0 ? exitCodes.failed : exitCodes.ok;
    }
  },
};

async function pendingIds(
  { deadLetters }: SubscriptionStorage,
  filter: DeadLetterFilter,
): Promise<readonly string[]> {
  const ids: string[] = [];
  for (;;) {
    const after = ids.at(-1);
    const page = await deadLetters.list(
      { ...filter, status: 'pending' },
      { limit: pageSize, ...(after === undefined ? {} : { after }) },
    );
    if (page.length === 0) return ids;
    ids.push(...page.map(({ id }) => id));
  }
}

function pagesOf(ids: readonly string[]): readonly (readonly string[])[] {
  return Array.from({ length: Math.ceil(ids.length / pageSize) }, (_, at) =>
    ids.slice(at * pageSize, (at + 1) * pageSize),
  );
}
