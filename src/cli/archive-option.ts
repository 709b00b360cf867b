// Where the commands of the archive look, and which messages they take.

import type { ReadArchiveOptions } from '../bus/archive.ts';
import type { ColdStorage } from '../bus/cold-storage.ts';
import { validatePattern } from '../contracts/subject-match.ts';
import { usage, type Command, type CommandContext } from './command.ts';
import { sinceTime } from './letter-filter-options.ts';

const archiveDefault = 'file:.millrace/archive';
const variable = 'MILLRACE_ARCHIVE';

export const archiveOption = {
  archive: { type: 'string', value: 'url', summary: `the archive (${archiveDefault})` },
} as const;

export const archiveRange = {
  since: {
    type: 'string',
    value: 'time',
    summary: 'stored not longer ago than 12h, 30d, or a date and time',
  },
  until: { type: 'string', value: 'time', summary: 'stored before this' },
} as const;

export const archiveSections: NonNullable<Command['sections']> = [
  {
    title: 'Archives',
    rows: [
      ['file:<folder>', 'a folder'],
      ['s3://<bucket>/<prefix>', 'a bucket; ?region= and &endpoint= for others than AWS'],
      [
        'AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY',
        "the bucket's keys; AWS_SESSION_TOKEN with them",
      ],
      [variable, 'the environment variable that stands in for --archive'],
    ],
  },
];

/** A mistyped folder has nothing in it: that is told, not made. */
export async function openArchive(
  { cwd, env }: Pick<CommandContext, 'cwd' | 'env'>,
  given: string | undefined,
): Promise<ColdStorage> {
  const { archiveKeysOf, openColdStorage } = await import('../platform/engines/open-bus.ts');
  const set = env[variable] === '' ? undefined : env[variable];
  return openColdStorage(given ?? set ?? archiveDefault, { cwd, keys: archiveKeysOf(env) });
}

/** The one argument: a subject or a pattern. */
export function patternOf(command: string, positionals: readonly string[]): string {
  const [pattern, ...more] = positionals;
  if (pattern === undefined || more.length > 0) {
    throw usage(`${command} takes one subject or pattern, such as 'gbe.events.audit.>'`);
  }
  validatePattern(pattern);
  return pattern;
}

export function rangeOf(values: {
  readonly since?: string | undefined;
  readonly until?: string | undefined;
}): ReadArchiveOptions {
  const nowMs = Date.now();
  const time = (text: string | undefined): Date | undefined =>
    text === undefined ? undefined : new Date(sinceTime(text, nowMs));
  return { from: time(values.since), to: time(values.until) };
}
