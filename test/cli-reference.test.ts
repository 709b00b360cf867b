// The table of commands, docs/cli.md and the completion scripts agree.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { closest } from '../src/foundation/closest.ts';
import { commands } from '../src/cli/commands/index.ts';
import { exitCodes } from '../src/cli/command.ts';
import { commandHelp } from '../src/cli/run-cli.ts';
import { createPaint } from '../src/cli/terminal/paint.ts';
import { withCliReference } from '../tools/cli-reference.ts';

const page = await readFile(new URL('../docs/cli.md', import.meta.url), 'utf8');

test('docs/cli.md lists every command and option (npm run generate)', () => {
  assert.equal(page, withCliReference(page));
});

test('docs/cli.md explains every exit code', () => {
  for (const code of Object.values(exitCodes))
    assert.match(page, new RegExp(`^\\| ${code} \\|`, 'm'));
});

for (const command of commands) {
  test(`millrace ${command.name}: its help has examples, and a summary for every option`, () => {
    const own = new RegExp(`millrace ${command.name}( |$)`, 'm');
    assert.match(command.examples.join('\n'), own);
    assert.ok(command.usage.startsWith(command.name));
    const help = commandHelp(command, createPaint(false));
    for (const [option, { summary, type, value }] of Object.entries(command.options)) {
      assert.ok(help.includes(`--${option}`) && summary !== '', option);
      assert.equal(
        value !== undefined,
        type === 'string',
        `--${option}: a string option names its value`,
      );
    }
    const used = command.examples.flatMap((line) =>
      own.test(line) ? [...line.matchAll(/ --([a-z-]+)/g)].map(([, option = '']) => option) : [],
    );
    for (const option of used) assert.ok(option in command.options, `--${option} of an example`);
  });
}

test('suggests the right command for a mistyped name', () => {
  const names = commands.map(({ name }) => name);
  for (const name of names.filter(({ length }) => length > 4)) {
    const slip = `${name.slice(0, -2)}${name.at(-1) ?? ''}${name.at(-2) ?? ''}`;
    if (!names.includes(slip)) assert.equal(closest(slip, names), name);
  }
});

test('completion contains every command and option', async () => {
  const completion = commands.find(({ name }) => name === 'completion');
  for (const shell of ['bash', 'zsh']) {
    let script = '';
    const stdout = { write: (text: string) => (script += text) };
    await completion?.run({
      args: [shell],
      stdout,
      stderr: stdout,
      stdin: () => Readable.from([]),
      env: {},
      signal: new AbortController().signal,
      cwd: '.',
      isTTY: false,
      paint: createPaint(false),
    });
    for (const { name, options } of commands) {
      for (const word of name.split(' ')) assert.ok(script.includes(word), word);
      for (const option of Object.keys(options)) assert.ok(script.includes(`--${option}`), option);
    }
  }
});
