// The examples in the comments of the sources and in the documents.

import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export interface Example {
  /** File and line of the example. */
  readonly where: string;
  readonly code: string;
}

const root = fileURLToPath(new URL('..', import.meta.url));

export function findExamples(): readonly Example[] {
  return [...sourceExamples(), ...documentExamples()];
}

function sourceExamples(): Example[] {
  return globSync('src/**/*.ts', { cwd: root })
    .filter((file) => !file.endsWith('.test.ts'))
    .flatMap((file) => {
      const source = readFileSync(join(root, file), 'utf8');
      return [...source.matchAll(/\/\*\*(?:(?!\*\/)[^])*?@example\n((?:(?!\*\/)[^])*)\*\//g)].map(
        (match) => ({
          where: `${file}:${source.slice(0, match.index).split('\n').length}`,
          code: (match[1] ?? '').replace(/^ *\* ?/gm, ''),
        }),
      );
    });
}

function documentExamples(): Example[] {
  return globSync(['README.md', '{docs,modules}/**/*.md'], { cwd: root }).flatMap((file) => {
    const text = readFileSync(join(root, file), 'utf8');
    return [...text.matchAll(/^```ts\n([^]*?)^```/gm)].map((match) => ({
      where: `${file}:${text.slice(0, match.index).split('\n').length}`,
      code: match[1] ?? '',
    }));
  });
}
