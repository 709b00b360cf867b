// `millrace outbox pause` and `resume`: a destination in all processes, from their next claim on.

import { exitCodes, readArgs, usage, type Command } from './command.ts';
import { outboxOnRecord } from './on-record.ts';
import { openOutbox } from './open-outbox.ts';
import { askedBy, byOption } from './open-subscriptions.ts';
import { jsonOption, storeOption, outboxSections } from './store-option.ts';

const options = { ...storeOption, ...byOption, ...jsonOption } as const;

export const outboxPauseCommand = switchCommand('pause', {
  summary: 'sends nothing more to a destination until it is resumed',
  done: 'paused',
});

export const outboxResumeCommand = switchCommand('resume', {
  summary: 'goes on with a destination that was paused',
  done: 'resumed',
});

function switchCommand(
  verb: 'pause' | 'resume',
  { summary, done }: { readonly summary: string; readonly done: string },
): Command {
  const name = `outbox ${verb}`;
  return {
    name,
    summary,
    usage: `${name} <destination>`,
    options,
    examples: [`millrace ${name} webhook:partner-x`],
    sections: outboxSections,
    async run(context) {
      const { stdout, paint } = context;
      const { values, positionals } = readArgs({ name, args: context.args }, options);
      const [destination, ...rest] = positionals;
      if (destination === undefined || destination === '' || rest.length > 0) {
        throw usage(`${name} takes one destination, such as webhook:partner-x`);
      }
      await using ledger = await openOutbox(context, values.store);
      const deed = { action: `outbox.${verb}`, target: destination, given: values.store };
      const changed = await outboxOnRecord(context, deed, () =>
        verb === 'pause'
          ? ledger.pause(destination, askedBy(context, values.by))
          : ledger.resume(destination),
      );
      const answer = { destination, paused: verb === 'pause', changed };
      const text = changed ? paint.green(done) : paint.dim(`was ${done} already`);
      stdout.write(
        values.json === true ? `${JSON.stringify(answer)}\n` : `${text} ${destination}\n`,
      );
      return exitCodes.ok;
    },
  };
}
