// `millrace archive …`: lists, reads and restores bus messages in cold storage.

import {
  listArchive,
  readArchive,
  restoreArchive,
  type ReadArchiveOptions,
} from '../../bus/archive.ts';
import type { ColdStorage } from '../../bus/cold-storage.ts';
import { validatePattern } from '../../contracts/subject-match.ts';
import {
  defineCommand,
  defineTextCommand,
  exitCodes,
  optionalArgument,
  usage,
  type Command,
  type CommandContext,
  type Values,
} from '../command.ts';
import { flag, option, pastTime, nonNegativeInteger } from '../options.ts';
import { storeUrl } from '../stores.ts';
import { grouped } from '../terminal/text.ts';
import { writeOut } from '../terminal/write-out.ts';

const archiveDefault = 'file:.millrace/archive';
const archiveVariable = 'MILLRACE_ARCHIVE';
const busVariable = 'MILLRACE_BUS';

const onePattern = "subject or pattern, such as 'gbe.events.audit.>'";

const archiveOption = {
  archive: {
    ...option('url', `archive (default: ${archiveDefault})`),
    section: {
      title: 'Archives',
      rows: [
        ['file:<folder>', 'a folder'],
        ['s3://<bucket>/<prefix>', 'a bucket; ?region= and &endpoint= for services other than AWS'],
        ['AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY', 'keys of the bucket, with AWS_SESSION_TOKEN'],
        [archiveVariable, 'environment variable, used if --archive is not given'],
      ],
    },
  },
} as const;

const rangeOptions = {
  since: option('time', 'only stored since 12h ago, 30d ago, or a date and time'),
  until: option('time', 'only stored before this time'),
};

const list = defineCommand({
  name: 'archive list',
  summary: 'lists archived segments of the bus (NDJSON with --json)',
  usage: '[<pattern>]',
  options: archiveOption,
  examples: ['millrace archive list', `millrace archive list 'gbe.events.audit.>' --json`],
  hasArguments: true,
  async run(context) {
    const { values, stdout, stderr, signal, paint } = context;
    const pattern = patternOf(optionalArgument(context, onePattern) ?? '>');
    const storage = await openArchive(context, values.archive);
    let count = 0;
    for await (const segment of listArchive(storage, pattern)) {
      count += segment.count;
      const { subject, firstStoredAt, lastStoredAt, bytes } = segment;
      await writeOut(
        stdout,
        values.json === true
          ? `${JSON.stringify(segment)}\n`
          : `${paint.bold(subject)}  ${firstStoredAt} to ${lastStoredAt}  ${grouped(segment.count)} messages, ${grouped(bytes)} bytes\n`,
        signal,
      );
    }
    if (values.json !== true) stderr.write(`${grouped(count)} messages\n`);
    return exitCodes.ok;
  },
});

const read = defineTextCommand({
  name: 'archive read',
  summary: 'prints archived messages as NDJSON, oldest first',
  usage: '<pattern> [options]',
  options: {
    ...archiveOption,
    ...rangeOptions,
    limit: option('N', 'maximum number of messages'),
  },
  examples: ['millrace archive read gbe.events.audit.change --since 2026-01-01 --limit 100'],
  argument: onePattern,
  async run(context) {
    const { values, stdout, signal } = context;
    const pattern = patternOf(context.argument);
    const limit = nonNegativeInteger('limit', values.limit) ?? Number.POSITIVE_INFINITY;
    const storage = await openArchive(context, values.archive);
    let count = 0;
    for await (const message of readArchive(storage, pattern, rangeOf(values))) {
      if (count === limit) break;
      count += 1;
      const { subject, sequence, storedAt, data } = message;
      const line = { subject, sequence, storedAt, ...contentOf(data) };
      await writeOut(stdout, `${JSON.stringify(line)}\n`, signal);
    }
    return exitCodes.ok;
  },
});

const restore = defineCommand({
  name: 'archive restore',
  summary: 'publishes archived messages again',
  usage: '<pattern> --to <subject> | --same-subject',
  options: {
    ...archiveOption,
    ...rangeOptions,
    bus: {
      ...option('url', 'bus (default: the database of the event store)'),
      section: {
        title: 'Bus',
        rows: [[busVariable, 'environment variable, used if --bus is not given']],
      },
    },
    to: option('subject', 'publishes to this subject, which existing consumer groups do not read'),
    'same-subject': flag(
      'publishes to the original subjects: consumer groups receive the messages again',
    ),
  },
  examples: [
    'millrace archive restore gbe.events.audit.change --since 30d --to gbe.restored.audit',
    `millrace archive restore 'gbe.tasks.*.terminal' --same-subject`,
  ],
  argument: onePattern,
  async run(context) {
    const { name, values, env, paint } = context;
    const pattern = patternOf(context.argument);
    const { to: subject } = values;
    if ((subject === undefined) === (values['same-subject'] !== true)) {
      throw usage(`${name} needs --to <subject>, or --same-subject`);
    }
    const storage = await openArchive(context, values.archive);
    const { createEngineSet } = await import('../../platform/engines/open-engines.ts');
    const named = values.bus ?? (env[busVariable] === '' ? undefined : env[busVariable]);
    const urls = {
      store: storeUrl(context, undefined),
      // Resolves a relative file path against the current directory.
      bus: named === undefined ? undefined : storeUrl(context, named),
    };
    await using engines = createEngineSet({ urls, needs: { bus: 'required' } });
    const bus = await engines.open('bus');
    const restored = await restoreArchive(bus, storage, pattern, { ...rangeOf(values), subject });
    const { published, duplicates, malformed } = restored;
    const parts = [
      `${paint.green('restored')} ${grouped(published)}`,
      ...(duplicates > 0 ? [`${grouped(duplicates)} duplicates`] : []),
      ...(malformed > 0 ? [`${grouped(malformed)} malformed`] : []),
    ];
    return { json: restored, text: parts.join(', ') };
  },
});

export const archiveCommands: readonly Command[] = [list, read, restore];

async function openArchive(
  { cwd, env }: Pick<CommandContext, 'cwd' | 'env'>,
  given: string | undefined,
): Promise<ColdStorage> {
  const { archiveKeysOf, openColdStorage } =
    await import('../../platform/engines/open-cold-storage.ts');
  const set = env[archiveVariable] === '' ? undefined : env[archiveVariable];
  return openColdStorage(given ?? set ?? archiveDefault, { cwd, keys: archiveKeysOf(env) });
}

function patternOf(pattern: string): string {
  validatePattern(pattern);
  return pattern;
}

function rangeOf({ since, until }: Values<typeof rangeOptions>): ReadArchiveOptions {
  return { from: pastTime('since', since), to: pastTime('until', until) };
}

/** The envelope if the message is JSON, otherwise its bytes. */
function contentOf(data: Uint8Array): object {
  try {
    return { envelope: JSON.parse(Buffer.from(data).toString()) as unknown };
  } catch {
    return { base64: Buffer.from(data).toString('base64') };
  }
}
