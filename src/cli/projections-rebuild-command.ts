// `millrace projections rebuild`: builds a new version beside the one that is asked.

import type { RebuildProgress } from '../projections/rebuild-progress.ts';
import { exitCodes, readArgs, usage, type Command } from './command.ts';
import { onRecord } from './on-record.ts';
import { createProgress } from './progress.ts';
import { grouped, progressBar } from './progress-bar.ts';
import { chosenProjection, loadProjections, modulesOption } from './projection-modules.ts';
import { jsonOption, openExistingStore, storeOption, storeSections } from './store-option.ts';

const options = { ...modulesOption, ...storeOption, ...jsonOption } as const;
const name = 'projections rebuild';

export const projectionsRebuildCommand: Command = {
  name,
  summary: 'builds a new version of a read model beside the one that is asked; goes on if stopped',
  usage: `${name} <projection> --modules <file>`,
  options,
  examples: [
    `millrace ${name} sub:banking:accounts:v2 --modules ./projections.ts`,
    `millrace ${name} sub:banking:accounts:v2 --modules ./projections.ts --json`,
  ],
  sections: storeSections,
  async run(context) {
    const { stdout, stderr, signal, paint } = context;
    const { values, positionals } = readArgs({ name, args: context.args }, options);
    const [wanted] = positionals;
    if (wanted === undefined || positionals.length > 1) {
      throw usage(`${name} takes one projection, such as sub:banking:accounts:v2`);
    }
    if (values.modules === undefined) throw usage(`${name} needs --modules <file>`);
    const modules = await loadProjections(context, values.modules);
    const projection = chosenProjection(modules, wanted);
    const { readModels } = modules;
    await using store = await openExistingStore(context, values.store);
    const { rebuildProjection } = await import('../projections/rebuild-projection.ts');
    const progress = createProgress(stderr);
    const deed = { action: 'projection.rebuild', target: wanted };
    const result = await onRecord(store, deed, () =>
      rebuildProjection(store, projection, {
        signal,
        onProgress: (told) => progress.show(progressBar(told.done, noteOf(told))),
        ...(readModels === undefined ? {} : { readModels }),
      }),
    ).finally(() => progress.clear());
    if (values.json === true) {
      stdout.write(`${JSON.stringify(result)}\n`);
      return exitCodes.ok;
    }
    const { events, deadLetters } = result;
    const left =
      deadLetters === 0 ? '' : `, ${paint.yellow(`${grouped(deadLetters)} dead letters`)}`;
    stdout.write(
      `${paint.green('built')} ${wanted} from ${grouped(events)} events${left}\n` +
        `next: millrace projections switch ${wanted}\n`,
    );
    return exitCodes.ok;
  },
};

function noteOf({ events, eventsPerSecond, secondsLeft }: RebuildProgress): string {
  const left = secondsLeft === undefined ? '' : `, ${durationText(secondsLeft)} left`;
  return `${grouped(events)} events, ${grouped(Math.round(eventsPerSecond))}/s${left}`;
}

function durationText(seconds: number): string {
  const whole = Math.ceil(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3_600) return `${Math.ceil(whole / 60)} min`;
  return `${(whole / 3_600).toFixed(1)} h`;
}
