// `millrace outbox archive`: sent messages of some age into a file, and then out of the ledger.

import { resolve } from 'node:path';
import { exitCodes, readArgs, usage, type Command } from './command.ts';
import { outboxOnRecord } from './on-record.ts';
import { openOutbox } from './open-outbox.ts';
import { durationSeconds } from './option-values.ts';
import { createProgress } from './progress.ts';
import { grouped } from './progress-bar.ts';
import { jsonOption, storeOption, storeSections } from './store-option.ts';

const name = 'outbox archive';

const options = {
  ...storeOption,
  'older-than': {
    type: 'string',
    value: 'time',
    summary: 'sent longer ago than this, such as 30d',
  },
  to: { type: 'string', value: 'file', summary: 'NDJSON, which is gone on with; .gz compresses' },
  ...jsonOption,
} as const;

export const outboxArchiveCommand: Command = {
  name,
  summary: 'moves sent messages into a file; their events may be enqueued again from then on',
  usage: `${name} --older-than <time> --to <file>`,
  options,
  examples: [`millrace ${name} --older-than 30d --to sent.ndjson.gz`],
  sections: storeSections,
  async run(context) {
    const { stdout, stderr, signal, paint } = context;
    const { values, positionals } = readArgs({ name, args: context.args }, options);
    const { to, 'older-than': olderThan } = values;
    if (positionals.length > 0 || olderThan === undefined || to === undefined) {
      throw usage(`${name} takes --older-than, such as 30d, and --to, such as sent.ndjson.gz`);
    }
    const sentBefore = new Date(Date.now() - durationSeconds('older-than', olderThan) * 1_000);
    const { archiveOutbox } = await import('../platform/transfer/archive-outbox.ts');
    await using ledger = await openOutbox(context, values.store);
    const progress = createProgress(stderr);
    let archived = 0;
    try {
      const target = `sent before ${sentBefore.toISOString()}`;
      const deed = { action: 'outbox.archive', target, given: values.store };
      await outboxOnRecord(context, deed, () =>
        archiveOutbox(ledger, resolve(context.cwd, to), {
          sentBefore,
          signal,
          onProgress(count) {
            archived = count;
            progress.show(`${grouped(count)} messages archived`);
          },
        }),
      );
    } catch (error) {
      if (!signal.aborted) throw error;
      progress.clear();
      stderr.write(`interrupted after ${grouped(archived)} messages: go on with the same file\n`);
      return exitCodes.interrupted;
    } finally {
      progress.clear();
    }
    stdout.write(
      values.json === true
        ? `${JSON.stringify({ archived, to })}\n`
        : `${paint.green('archived')} ${grouped(archived)} to ${to}\n`,
    );
    return exitCodes.ok;
  },
};
