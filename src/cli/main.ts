#!/usr/bin/env node
// The program. Node's compile cache halves its start time and saves a third of its memory; without a
// writable cache folder the program works all the same.

import { enableCompileCache } from 'node:module';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

// Use a folder of the installation: in a shared folder, other users could place code that this process runs.
const [, installed] = /^(.*[\\/]node_modules[\\/])/.exec(import.meta.filename) ?? [];
const folder = installed ?? fileURLToPath(new URL('../../node_modules/', import.meta.url));
// Worker threads read the folder from the environment.
process.env['NODE_COMPILE_CACHE'] ??= `${folder}.cache/millrace`;
enableCompileCache(process.env['NODE_COMPILE_CACHE']);
await import('./run-process.ts');
