// The bus of a platform, and the archive commands.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { archiveStream, fileColdStorage } from 'millrace/bus';
import { createPlatform, examineEngines, openColdStorage } from 'millrace/platform';
import { openRole } from '../../src/platform/engines/open-engines.ts';
import { useWorkspace } from '../cli-store-terminal.ts';

const audit = 'gbe.events.audit.change';

describe('the bus of a platform', () => {
  const home = useWorkspace();

  test('is kept in the file of the store by default, and opened on first use', async () => {
    const store = `sqlite:${home.folder()}/events.db`;
    await using platform = await createPlatform({ engines: { store }, roles: ['sweepers'] });
    await platform.start();
    const bus = await platform.engines.bus();
    assert.equal(await platform.engines.bus(), bus);
    await bus.publish({ subject: audit, payload: 1 });
    await using other = await openRole(store, 'bus');
    assert.equal((await other.stream(audit))?.length, 1);
  });

  test('is swept by its rules, and audit messages are archived first', async () => {
    const folder = home.folder();
    const url = `sqlite:${folder}/bus.db`;
    const subject = 'gbe.notify.topic.a';
    {
      await using bus = await openRole(url, 'bus');
      await bus.publishMany([1, 2, 3].map((payload) => ({ subject, payload })));
      await bus.publish({ subject: audit, payload: 4 });
    }
    await using platform = await createPlatform({
      engines: { store: `sqlite:${folder}/events.db`, bus: url },
      roles: ['sweepers'],
      busRetention: [
        { pattern: 'gbe.notify.>', lengthMax: 1 },
        { pattern: audit, ageMs: 0, isArchived: true },
      ],
      busArchive: `file:${folder}/archive`,
    });
    const bus = await platform.engines.bus();
    await platform.start();
    const isSwept = async (): Promise<boolean> =>
      (await bus.stream(subject))?.length === 1 && (await bus.stream(audit))?.length === 0;
    const deadlineMs = Date.now() + 60_000;
    while (!(await isSwept()) && Date.now() < deadlineMs) await new Promise(setImmediate);
    assert.equal(await isSwept(), true);
    const { stdout } = await home.millrace('archive list --archive file:archive --json');
    assert.match(stdout, /"subject":"gbe\.events\.audit\.change".*"count":1/);
  });

  test('the doctor checks the bus', async () => {
    const folder = home.folder();
    const store = `sqlite:${folder}/events.db`;
    const reports = await examineEngines({ store, bus: `sqlite:${folder}/elsewhere.db` });
    const report = reports.find(({ roles }) => roles.includes('bus'));
    assert.deepEqual(report?.roles, ['bus']);
    assert.ok(report.findings.every(({ level }) => level !== 'broken'));
  });

  test('rejects the URL of an unknown engine', async () => {
    await assert.rejects(() => openRole('mysql://x', 'bus'), { code: 'CONFIG_INVALID' });
    await assert.rejects(() => openColdStorage('ftp://x'), { code: 'CONFIG_INVALID' });
    await assert.rejects(() => openColdStorage('s3://bucket/x'), { message: /AWS_ACCESS_KEY_ID/ });
  });
});

describe('millrace archive', () => {
  const home = useWorkspace();

  async function archived(): Promise<void> {
    await using bus = await openRole(`sqlite:${home.folder()}/.millrace/events.db`, 'bus');
    await bus.publishMany([1, 2, 3].map((n) => ({ subject: audit, payload: { n } })));
    const before = new Date(Date.now() + 86_400_000);
    await archiveStream(bus, fileColdStorage(`${home.folder()}/.millrace/archive`), audit, {
      before,
    });
  }

  test('the archive commands list, read and restore messages', async () => {
    await archived();
    const listed = await home.millrace('archive list');
    assert.match(listed.stdout, /^gbe\.events\.audit\.change .* 3 messages, \d+ bytes\n$/);
    const read = await home.millrace('archive read gbe.events.> --limit 2');
    const lines = read.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as object);
    assert.equal(lines.length, 2);
    assert.match(read.stdout, /"payload":\{"n":1\}/);
    const none = await home.millrace('archive read gbe.events.> --until 2020-01-01');
    assert.deepEqual([none.code, none.stdout], [0, '']);
    const line = `archive restore ${audit} --to gbe.restored.audit`;
    assert.match((await home.millrace(line)).stdout, /^restored 3\n$/);
    assert.match((await home.millrace(line)).stdout, /^restored 0, 3 duplicates\n$/);
  });

  test('reports wrong arguments with their error code', async () => {
    for (const [line, code, problem] of [
      ['archive read', 2, /needs one subject or pattern/],
      ['archive read gbe.a*', 1, /^NAME_INVALID/],
      ['archive list --archive ftp://x', 1, /^CONFIG_INVALID/],
      [`archive restore ${audit}`, 2, /--to <subject>, or --same-subject/],
      [`archive restore ${audit} --to x --same-subject`, 2, /--to <subject>/],
      [`archive read ${audit} --since never`, 2, /--since takes/],
    ] as const) {
      const outcome = await home.millrace(line);
      assert.equal(outcome.code, code, line);
      assert.match(outcome.stderr, problem, line);
    }
  });
});
