// `millrace scavenge`: removes for good what retention hides.

import type { ScavengeProgress } from '../store/store-engine.ts';
import { exitCodes, readArgs, usage, type Command } from './command.ts';
import { createProgress } from './progress.ts';
import { grouped, progressBar } from './progress-bar.ts';
import { jsonOption, openExistingStore, storeOption, storeSections } from './store-option.ts';

const options = { ...storeOption, ...jsonOption } as const;

export const scavengeCommand: Command = {
  name: 'scavenge',
  summary: 'removes for good the events that retention and deletion hide',
  usage: 'scavenge',
  options,
  examples: ['millrace scavenge', 'millrace scavenge --store postgres://localhost/shop --json'],
  sections: storeSections,
  async run(context) {
    const { stdout, stderr, signal, paint } = context;
    const { values, positionals } = readArgs({ name: 'scavenge', args: context.args }, options);
    if (positionals.length > 0) throw usage('scavenge takes no argument: the store is an option');
    await using store = await openExistingStore(context, values.store);
    const progress = createProgress(stderr);
    const onProgress = ({ streamsDone, streamsTotal, eventsRemoved }: ScavengeProgress): void =>
      progress.show(
        progressBar(
          streamsTotal === 0 ? 1 : streamsDone / streamsTotal,
          `${grouped(streamsDone)} of ${grouped(streamsTotal)} streams, ${grouped(eventsRemoved)} events removed`,
        ),
      );
    const result = await store.scavenge({ signal, onProgress }).finally(() => progress.clear());
    stdout.write(
      values.json === true
        ? `${JSON.stringify(result)}\n`
        : `${paint.green('removed')} ${grouped(result.eventsRemoved)} events from ${grouped(result.streamsTotal)} streams with retention\n`,
    );
    return exitCodes.ok;
  },
};
