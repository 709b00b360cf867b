import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { runCli, type CliContext } from './run-cli.ts';
import { createPaint } from './terminal/paint.ts';

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

for (const [name, url, mistake] of [
  ['MILLRACE_STORE', 'postgre://u:hunter2@h/db', /Did you mean postgres:\?/],
  ['MILLRACE_KEYS', 'redis://u:hunter2@h?clster', /did you mean 'cluster'\?/],
  ['MILLRACE_BUS', 'nats://u:hunter2@h:99999', /port from 1 to 65535/],
] as const) {
  test(`start names ${name}, whose URL is wrong, and no password`, async () => {
    const { context, written } = fakeTerminal({ args: ['start'], env: { [name]: url } });
    assert.notEqual(await runCli(context), 0);
    assert.match(written.stderr, new RegExp(name));
    assert.match(written.stderr, mistake);
    assert.ok(!written.stderr.includes('hunter2'), written.stderr);
  });
}

test('an interrupted command exits with 130 and prints nothing', async () => {
  const { context, written } = fakeTerminal({
    args: ['lint', import.meta.dirname],
    signal: AbortSignal.abort(),
  });
  assert.equal(await runCli(context), 130);
  assert.deepEqual(written, { stdout: '', stderr: '' });
});

for (const [line, said] of [
  ['lnit', /unknown command 'lnit': did you mean lint\?/],
  ['help tuor', /unknown command 'tuor': did you mean tour\?/],
  ['--vershun', /unknown option '--vershun'/],
  ['lint src --jsn', /lint: unknown option '--jsn': did you mean --json\?/],
  ['lint src --json=yes', /lint: Option '--json' does not take an argument/],
  ['lint src --rule', /lint: Option '--rule <value>' argument missing/],
  ['lint', /lint needs a path/],
  ['lint src --rule redis-keys', /unknown rule 'redis-keys': did you mean redis-key\?/],
  ['lint src --max-warnings few', /non-negative integer, not 'few'/],
  ['lint no/such/folder', /no file or folder '.*no\/such\/folder'/],
  ['new', /new needs aggregate or outbox/],
  ['new agregate a b', /did you mean aggregate\?/],
  ['new aggregate banking', /needs a bounded context and an aggregate/],
  ['new aggregate banking currency more', /needs a bounded context and an aggregate/],
  ['completion', /one shell: bash or zsh/],
  ['completion fish', /unknown shell 'fish'/],
  ['tour --fast', /tour: unknown option '--fast'/],
  ['stream raed x', /unknown command 'stream raed': did you mean stream read\?/],
  ['help stream raed', /unknown command 'stream raed': did you mean stream read\?/],
] as const) {
  test(`reports a usage error in one line: millrace ${line}`, async () => {
    const { context, written } = fakeTerminal({ args: line.split(' '), paint: createPaint(false) });
    assert.equal(await runCli(context), 2);
    assert.equal(written.stdout, '');
    assert.match(written.stderr, said);
    assert.equal(written.stderr.trimEnd().split('\n').length, 1, written.stderr);
  });
}
