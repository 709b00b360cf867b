// Whether the built console is that of the current sources. In JavaScript, because `setup.mjs` runs on older Node versions.

import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const folder = join(root, 'console');

export const consoleStamp = 'fingerprint';

export function consoleFingerprint() {
  const hash = createHash('sha256');
  const files = ['package-lock.json', 'tools/build-console.ts', 'console/index.html'];
  for (const path of [...files, ...filesBelow('console/src')]) {
    hash.update(`${path}\n`).update(readFileSync(join(root, path)));
  }
  return hash.digest('hex');
}

export function consoleIsBuilt() {
  const stamp = join(folder, 'dist', consoleStamp);
  return existsSync(stamp) && readFileSync(stamp, 'utf8') === consoleFingerprint();
}

function filesBelow(path) {
  return (
    readdirSync(join(root, path), { withFileTypes: true })
      // oxlint-disable-next-line unicorn/no-array-sort -- Node 18 has no `toSorted`
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .flatMap((each) => {
        const inner = `${path}/${each.name}`;
        return each.isDirectory() ? filesBelow(inner) : [inner];
      })
  );
}
