// Builds the web console into `console/dist`: compressed beforehand, and replaced as a whole. `tools/setup.mjs` runs it when
// the sources have changed.

import { globSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import tailwindcss from '@tailwindcss/vite';
import react from '@vitejs/plugin-react';
import { build } from 'vite';
import { consoleFingerprint, consoleStamp } from './console-fingerprint.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const target = join(root, 'console', 'dist');
const work = join(root, '.millrace', `console-build-${process.pid}`);

await build({
  root: join(root, 'console'),
  configFile: false,
  base: './',
  logLevel: 'warn',
  plugins: [react(), tailwindcss()],
  build: {
    outDir: work,
    emptyOutDir: true,
    target: 'es2024',
    // Inline scripts and styles would need exceptions in the content security policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 1_000,
  },
});
for (const name of globSync('assets/*.{js,css,svg}', { cwd: work })) {
  const bytes = readFileSync(join(work, name));
  const params = { [constants.BROTLI_PARAM_QUALITY]: 9 };
  writeFileSync(join(work, `${name}.br`), brotliCompressSync(bytes, { params }));
  writeFileSync(join(work, `${name}.gz`), gzipSync(bytes, { level: 9 }));
}
writeFileSync(join(work, consoleStamp), consoleFingerprint());
mkdirSync(join(root, 'console'), { recursive: true });
rmSync(target, { recursive: true, force: true });
renameSync(work, target);
