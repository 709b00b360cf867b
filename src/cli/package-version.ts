// The version of this package: package.json is one folder up when published, two in the repository.

import { existsSync, readFileSync } from 'node:fs';

export function packageVersion(): string {
  const nearest = ['../package.json', '../../package.json']
    .map((path) => new URL(path, import.meta.url))
    .find((url) => existsSync(url));
  if (nearest === undefined) return 'unknown';
  return (JSON.parse(readFileSync(nearest, 'utf8')) as { readonly version: string }).version;
}
