import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { createPaint } from './paint.ts';
import { createProgress } from './progress.ts';
import { runCli, type CliContext } from './run-cli.ts';

function fakeTerminal(overrides: Partial<CliContext> = {}) {
  const written = { stdout: '', stderr: '' };
  const context: CliContext = {
    args: [],
    stdout: { write: (text) => (written.stdout += text), isTTY: true },
    stderr: { write: (text) => (written.stderr += text), isTTY: true },
    stdin: () => Readable.from([]),
    env: {},
    signal: new AbortController().signal,
    cwd: '.',
    isTTY: true,
    paint: createPaint(true),
    debug: false,
    ...overrides,
  };
  return { context, written };
}

test('uses colours on a terminal', async () => {
  const { context, written } = fakeTerminal({ args: ['tour'] });
  assert.equal(await runCli(context), 0);
  assert.ok(written.stdout.includes('\u001b[1mMillrace\u001b[22m'));
});

test('a command that is stopped ends with 130 and says nothing', async () => {
  const { context, written } = fakeTerminal({
    args: ['lint', import.meta.dirname],
    signal: AbortSignal.abort(),
  });
  assert.equal(await runCli(context), 130);
  assert.deepEqual(written, { stdout: '', stderr: '' });
});

test('progress shows after a while, on a terminal only, and leaves no trace', () => {
  for (const isTTY of [true, false]) {
    let now = 0;
    const writes: string[] = [];
    const progress = createProgress({ write: (text) => writes.push(text), isTTY }, () => now);
    progress.show('early');
    now = 600;
    progress.show('first');
    now = 650;
    progress.show('too soon');
    now = 800;
    progress.show('second');
    progress.clear();
    progress.clear();
    const erase = '\r\u001b[K';
    assert.deepEqual(writes, isTTY ? ['first', erase, 'second', erase] : []);
  }
});

for (const [line, said] of [
  ['lnit', /no command 'lnit': did you mean lint\?/],
  ['help tuor', /no command 'tuor': did you mean tour\?/],
  ['--vershun', /no option '--vershun'/],
  ['lint src --jsn', /lint has no option '--jsn': did you mean --json\?/],
  ['lint src --json=yes', /lint: Option '--json' does not take an argument/],
  ['lint src --rule', /lint: Option '--rule <value>' argument missing/],
  ['lint', /lint needs a path/],
  ['lint src --rule redis-keys', /no rule 'redis-keys': did you mean redis-key\?/],
  ['lint src --max-warnings few', /whole number, not 'few'/],
  ['lint no/such/folder', /no file or folder '.*no\/such\/folder'/],
  ['new', /new needs to know what/],
  ['new agregate a b', /did you mean aggregate\?/],
  ['new aggregate banking', /takes a bounded context and an aggregate/],
  ['new aggregate banking currency more', /takes a bounded context and an aggregate/],
  ['completion', /one shell: bash or zsh/],
  ['completion fish', /does not know 'fish'/],
  ['tour --fast', /tour has no option '--fast'/],
  ['stream raed x', /no command 'stream raed': did you mean stream read\?/],
  ['help stream raed', /no command 'stream raed': did you mean stream read\?/],
] as const) {
  test(`says in one line what is wrong with: millrace ${line}`, async () => {
    const { context, written } = fakeTerminal({ args: line.split(' '), paint: createPaint(false) });
    assert.equal(await runCli(context), 2);
    assert.equal(written.stdout, '');
    assert.match(written.stderr, said);
    assert.equal(written.stderr.trimEnd().split('\n').length, 1, written.stderr);
  });
}
