// The arguments of `npm test`.

import { parseArgs } from 'node:util';

export const engines = ['memory', 'sqlite', 'postgres', 'redis', 'nats', 'kurrent'] as const;

export interface TestOptions {
  /** Only the files whose paths contain one of these words. */
  readonly words: readonly string[];
  /** Only the tests whose titles match one of these patterns. */
  readonly titles: readonly string[];
  /** Leaves out the files that need another engine. */
  readonly engines: readonly string[] | undefined;
  readonly bail: boolean;
  readonly rerunFailed: boolean;
  /** Leaves out the files that need a server or are slow. */
  readonly fast: boolean;
}

export const usage = `usage: npm test -- [words…] [options]

  words               only the test files whose paths contain one of the words
  --title <pattern>   only the tests whose titles match
  --engines <names>   leave out files that need other engines: ${engines.join(', ')}
  --bail              stop at the first failure
  --rerun-failed      only what failed in the last run
  --fast              leave out files that need servers or are slow (npm run check)`;

/** Throws a `TypeError` that says which argument is wrong. */
export function parseTestOptions(args: readonly string[]): TestOptions {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      title: { type: 'string', multiple: true, default: [] },
      engines: { type: 'string' },
      bail: { type: 'boolean', default: false },
      'rerun-failed': { type: 'boolean', default: false },
      fast: { type: 'boolean', default: false },
    },
  });
  const chosen = values.engines?.split(',').map((name) => name.trim());
  const unknown = chosen?.find((name) => !engines.some((known) => known === name));
  if (unknown !== undefined) {
    throw new TypeError(`Unknown engine "${unknown}". Known: ${engines.join(', ')}.`);
  }
  return {
    words: positionals,
    titles: values.title.map(escapeTitle),
    engines: chosen,
    bail: values.bail,
    rerunFailed: values['rerun-failed'],
    fast: values.fast,
  };
}

export interface EngineTestOptions extends Pick<TestOptions, 'words' | 'titles'> {
  /** Gives each file more time. */
  readonly stress: boolean;
}

/** The arguments of `npm run test:engines`. Throws a `TypeError` that says which argument is wrong. */
export function parseEngineTestOptions(args: readonly string[]): EngineTestOptions {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      title: { type: 'string', multiple: true, default: [] },
      stress: { type: 'boolean', default: false },
    },
  });
  return { words: positionals, titles: values.title.map(escapeTitle), stress: values.stress };
}

/** A title is printed with ' › ' between its suites, which node:test separates by blanks. */
function escapeTitle(title: string): string {
  return title.replaceAll(' › ', ' ').replace(/[.*+?^${}()|[\]\\/]/g, String.raw`\$&`);
}
