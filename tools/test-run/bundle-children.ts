// Bundles the program, its threads and the scripts that tests start as child processes. A child loads one file and a few
// chunks instead of about 800 modules, which is most of the CPU time of a short process. Only whole runs bundle: it takes
// two seconds.

import { globSync, rmSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { rolldown } from 'rolldown';
import { bundledChildrenFolder } from '../../src/testing/bundled-children.ts';

export async function bundleChildren(root: string): Promise<Readonly<Record<string, string>>> {
  const folder = join(root, 'node_modules/.cache/millrace-children');
  rmSync(folder, { recursive: true, force: true });
  const scripts = globSync(['{test,src}/**/*-main.ts', 'src/cli/main.ts'], { cwd: root });
  await using bundle = await rolldown({
    cwd: root,
    input: Object.fromEntries(scripts.map((script) => [script.replace(/\.ts$/, ''), script])),
    platform: 'node',
    treeshake: false,
    // Packages stay separate, except the one with the most files; `millrace` is this package.
    external: (id) => !/^(?:[./]|typebox|millrace)/.test(id) && !id.startsWith(root),
    plugins: [{ name: 'locations', transform: keepLocation(root, folder) }],
  });
  await bundle.write({
    dir: folder,
    entryFileNames: '[name].js',
    chunkFileNames: 'chunks/[hash].js',
  });
  return { [bundledChildrenFolder]: folder };
}

/** Lua files and templates are found next to the source, scripts of threads next to the bundled script. */
function keepLocation(root: string, folder: string) {
  return (code: string, id: string): string | undefined => {
    if (!code.includes('import.meta.')) return undefined;
    const source = resolve(id);
    const file = code.includes('new Worker(')
      ? join(folder, relative(root, source)).replace(/\.ts$/, '.js')
      : source;
    const values = { url: pathToFileURL(file).href, filename: file, dirname: dirname(file) };
    return code.replaceAll(
      /\bimport\.meta\.(url|filename|dirname)\b/g,
      (_all, name: keyof typeof values) => JSON.stringify(values[name]),
    );
  };
}
