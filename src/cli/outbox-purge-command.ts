// `millrace outbox purge`: forgets sent messages of some age, in small commits.

import { outboxLimits } from '../outbox/outbox-limits.ts';
import { exitCodes, readArgs, usage, type Command } from './command.ts';
import { outboxOnRecord } from './on-record.ts';
import { openOutbox } from './open-outbox.ts';
import { durationSeconds } from './option-values.ts';
import { grouped } from './progress-bar.ts';
import { jsonOption, storeOption, outboxSections } from './store-option.ts';

const name = 'outbox purge';

const options = {
  ...storeOption,
  'older-than': {
    type: 'string',
    value: 'time',
    summary: 'sent longer ago than this, such as 30d',
  },
  yes: { type: 'boolean', summary: 'says that it is meant' },
  ...jsonOption,
} as const;

export const outboxPurgeCommand: Command = {
  name,
  summary: 'forgets sent messages, and with them that their events were enqueued',
  usage: `${name} --older-than <time> --yes`,
  options,
  examples: [`millrace ${name} --older-than 30d --yes`],
  sections: outboxSections,
  async run(context) {
    const { stdout, signal, paint } = context;
    const { values, positionals } = readArgs({ name, args: context.args }, options);
    const { 'older-than': olderThan } = values;
    if (positionals.length > 0 || olderThan === undefined) {
      throw usage(`${name} takes --older-than, such as --older-than 30d`);
    }
    if (values.yes !== true) throw usage('what is purged is gone: pass --yes if that is meant');
    const before = new Date(Date.now() - durationSeconds('older-than', olderThan) * 1_000);
    await using ledger = await openOutbox(context, values.store);
    const target = `sent before ${before.toISOString()}`;
    const deed = { action: 'outbox.purge', target, given: values.store };
    const purged = await outboxOnRecord(context, deed, async () => {
      for (let sum = 0; ;) {
        signal.throwIfAborted();
        const count = await ledger.purge(before, outboxLimits.purgeBatchDefault);
        sum += count;
        if (count < outboxLimits.purgeBatchDefault) return sum;
      }
    });
    stdout.write(
      values.json === true
        ? `${JSON.stringify({ purged })}\n`
        : `${paint.green('purged')} ${grouped(purged)}\n`,
    );
    return exitCodes.ok;
  },
};
