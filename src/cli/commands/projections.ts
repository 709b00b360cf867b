// `millrace projections …`: shows, rebuilds, switches and retires versions of read models.

import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { namedVersion } from '../../projections/switch-projection.ts';
import type { ProjectionRoles } from '../../projections/start-projection.ts';
import type { Projection } from '../../projections/projection.ts';
import type { ReadModelStore } from '../../projections/read-model-store.ts';
import type { RebuildProgress } from '../../projections/rules/rebuild-progress.ts';
import { audited } from '../audit.ts';
import { defineCommand, didYouMean, usage, type Command, type CommandContext } from '../command.ts';
import { checkConfirmed, flag, repeatable } from '../options.ts';
import { openExistingRoles, storeOption } from '../stores.ts';
import { createProgress, progressBar } from '../terminal/progress.ts';
import { counted, grouped } from '../terminal/text.ts';

const oneProjection = 'projection, such as sub:banking:accounts:v2';

const modulesOption = {
  modules: repeatable(
    'file',
    'file that exports projections, and `readModels` if they are not in the store',
  ),
};

const status = defineCommand({
  name: 'projections status',
  summary: 'lists the versions of read models: which one queries use, and the lag of each',
  options: storeOption,
  examples: [
    'millrace projections status',
    'millrace projections status --store postgres://localhost/shop --json',
  ],
  async run(context) {
    const { paint } = context;
    await using db = await openProjections(context, context.values.store);
    const { projectionStatus } = await import('../../projections/switch-projection.ts');
    const all = await projectionStatus(db);
    const lines = all.map((each) => {
      const { family, version, projection, active, behind, unit, paused, deadLetters } = each;
      const notes = [
        behind === undefined
          ? 'never started'
          : `${counted(behind, unit === 'bytes' ? 'byte' : 'event')} behind`,
        ...(paused ? ['paused'] : []),
        ...(deadLetters > 0 ? [paint.yellow(counted(deadLetters, 'dead letter'))] : []),
      ];
      const state = active ? paint.green(`${each.status}, active`) : each.status;
      return `${family} v${version}  ${state}  ${projection}  ${notes.join(', ')}\n`;
    });
    return {
      document: all,
      text: lines.join('') || 'no projections: none was ever started on this store',
    };
  },
});

const rebuild = defineCommand({
  name: 'projections rebuild',
  summary: 'builds a new version of a read model while queries use the old one; resumable',
  usage: '<projection> --modules <file>',
  options: { ...modulesOption, ...storeOption },
  examples: [
    'millrace projections rebuild sub:banking:accounts:v2 --modules ./projections.ts',
    'millrace projections rebuild sub:banking:accounts:v2 --modules ./projections.ts --json',
  ],
  argument: oneProjection,
  async run(context) {
    const { name: command, values, argument: name, stderr, signal, paint } = context;
    if (values.modules === undefined) throw usage(`${command} needs --modules <file>`);
    const { projections, readModels } = await loadProjections(context, values.modules);
    const projection = projections.get(name);
    if (projection === undefined) {
      throw usage(`unknown projection ${didYouMean(name, projections.keys())}`);
    }
    await using db = await openProjections(context, values.store, readModels);
    const { store } = db;
    const { rebuildProjection } = await import('../../projections/rebuild-projection.ts');
    const progress = createProgress(stderr);
    const action = { store, action: 'projection.rebuild', target: name };
    const result = await audited(context, action, () =>
      rebuildProjection(db, projection, {
        signal,
        onProgress: (now) => progress.show(progressBar(now.done, progressText(now))),
      }),
    ).finally(() => progress.clear());
    const { events, deadLetters } = result;
    const dead =
      deadLetters === 0 ? '' : `, ${paint.yellow(`${grouped(deadLetters)} dead letters`)}`;
    return {
      json: result,
      text:
        `${paint.green('built')} ${name} from ${grouped(events)} events${dead}\n` +
        `next: millrace projections switch ${name}`,
    };
  },
});

const activate = defineCommand({
  name: 'projections switch',
  summary: 'makes queries use this version, which must have caught up',
  usage: '<projection>',
  options: storeOption,
  examples: ['millrace projections switch sub:banking:accounts:v2'],
  argument: oneProjection,
  async run(context) {
    const { values, argument: name, paint } = context;
    await using db = await openProjections(context, values.store);
    const { store } = db;
    const version = await namedVersion(db.readModelVersions, name);
    const { switchProjection } = await import('../../projections/switch-projection.ts');
    const action = { store, action: 'projection.switch', target: version.name };
    await audited(context, action, () => switchProjection(db, version));
    const { bc, aggregate, version: number } = version.readModel;
    return {
      json: { family: `${bc}.${aggregate}`, active: number },
      text: `${paint.green('switched')} ${bc}.${aggregate} to v${number}`,
    };
  },
});

const retire = defineCommand({
  name: 'projections retire',
  summary: 'stops an inactive version and removes its documents; resumable',
  usage: '<projection> --yes',
  options: {
    ...modulesOption,
    yes: flag('confirms the removal of its documents'),
    ...storeOption,
  },
  examples: ['millrace projections retire sub:banking:accounts:v1 --yes'],
  argument: oneProjection,
  async run(context) {
    const { name: command, values, argument: name, stderr, signal, paint } = context;
    checkConfirmed(values, `${command} removes all documents of ${name}`);
    const { readModels } = await loadProjections(context, values.modules);
    await using db = await openProjections(context, values.store, readModels);
    const { store } = db;
    const version = await namedVersion(db.readModelVersions, name);
    const { retireProjection } = await import('../../projections/switch-projection.ts');
    const progress = createProgress(stderr);
    const action = { store, action: 'projection.retire', target: version.name };
    const removed = await audited(context, action, () =>
      retireProjection(db, version, {
        signal,
        onProgress: (count) => progress.show(`${grouped(count)} documents removed`),
      }),
    ).finally(() => progress.clear());
    return {
      json: { removed },
      text: `${paint.green('retired')} ${version.name}: ${grouped(removed)} documents removed`,
    };
  },
});

export const projectionCommands: readonly Command[] = [status, rebuild, activate, retire];

/** Read models of a module replace those of the engines. */
async function openProjections(
  context: CommandContext,
  given: string | undefined,
  readModels?: ReadModelStore,
): Promise<ProjectionRoles & AsyncDisposable> {
  const engines = await openExistingRoles(context, given);
  try {
    const { readModelVersions } = await engines.handleOf('subscriptions');
    if (readModelVersions === undefined) throw new TypeError('checkpoints without versions');
    return {
      store: await engines.open('store'),
      subscriptions: await engines.open('subscriptions'),
      leases: await engines.leases(),
      readModels: readModels ?? (await engines.open('readModels')),
      readModelVersions,
      [Symbol.asyncDispose]: () => engines[Symbol.asyncDispose](),
    };
  } catch (error) {
    await engines[Symbol.asyncDispose]();
    throw error;
  }
}

interface ProjectionModules {
  readonly projections: ReadonlyMap<string, Projection>;
  /** Default: the read models of the configured engines. */
  readonly readModels: ReadModelStore | undefined;
}

async function loadProjections(
  { cwd }: Pick<CommandContext, 'cwd'>,
  files: readonly string[] = [],
): Promise<ProjectionModules> {
  const projections = new Map<string, Projection>();
  let readModels: ReadModelStore | undefined;
  for (const file of files) {
    const exported = await importFile(resolve(cwd, file), file);
    for (const [name, value] of Object.entries(exported)) {
      if (name === 'readModels') readModels = value as ReadModelStore;
      for (const each of Array.isArray(value) ? (value as unknown[]) : [value]) {
        if (isProjection(each)) projections.set(each.name, each);
      }
    }
  }
  return { projections, readModels };
}

async function importFile(path: string, shown: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    return (await import(pathToFileURL(path).href)) as Record<string, unknown>;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw usage(`--modules ${shown} cannot be loaded: ${reason.split('\n')[0]}`, { cause: error });
  }
}

/** Checks the shape, since the file may use another copy of this package. */
function isProjection(value: unknown): value is Projection {
  return (
    typeof value === 'object' &&
    value !== null &&
    'name' in value &&
    typeof value.name === 'string' &&
    'readModel' in value &&
    'idOf' in value &&
    'apply' in value &&
    typeof value.apply === 'function'
  );
}

function progressText({ events, eventsPerSecond, secondsLeft }: RebuildProgress): string {
  const left = secondsLeft === undefined ? '' : `, ${durationText(secondsLeft)} left`;
  return `${grouped(events)} events, ${grouped(Math.round(eventsPerSecond))}/s${left}`;
}

function durationText(seconds: number): string {
  const whole = Math.ceil(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3_600) return `${Math.ceil(whole / 60)} min`;
  return `${(whole / 3_600).toFixed(1)} h`;
}
