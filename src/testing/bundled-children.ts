// A run of all tests bundles the scripts of child processes once, so that each child starts in half of the time.

import { existsSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The environment variable with the folder of the bundled scripts. */
export const bundledChildrenFolder = 'MILLRACE_TEST_CHILDREN';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** The path of the script, bundled if this run has bundled it. */
export function childScript(script: URL): string {
  const path = fileURLToPath(script);
  const folder = process.env[bundledChildrenFolder];
  if (folder === undefined) return path;
  const bundled = join(folder, relative(root, path).replace(/\.ts$/, '.js'));
  return existsSync(bundled) ? bundled : path;
}
