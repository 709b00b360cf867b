import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { lintRules, type Finding, type LintOptions } from './finding.ts';
import { lintSource } from './lint-source.ts';
import { applySuggestions, assertClean } from './rule-cases.ts';
import { propertyRuns } from '../../testing/property-runs.ts';

const badKey = "'app:core:banking:currency:v1:USD'";

async function only(source: string, options: LintOptions = {}, file = 'a.ts'): Promise<Finding> {
  const findings = await lintSource(file, source, options);
  assert.equal(findings.length, 1, JSON.stringify(findings));
  return findings[0] as Finding;
}

describe('the linter', () => {
  test('says where, what, why and how to mend it', async () => {
    assert.deepEqual(await only(`const a = 1;\n  get(${badKey});\n`, {}, 'src/a.ts'), {
      rule: 'redis-key',
      severity: 'error',
      file: 'src/a.ts',
      line: 2,
      column: 7,
      start: 19,
      end: 53,
      text: badKey,
      reason:
        'the tenant must stand in braces, {core}, so that a cluster keeps its keys in one slot',
      suggestion: "'app:{core}:banking:currency:v1:USD'",
    });
  });

  test('counts columns behind a byte order mark, wide characters and every kind of line end', async () => {
    assert.deepEqual(at(await only(`\uFEFFget(${badKey})`)), [1, 5]);
    assert.deepEqual(at(await only(`'😀'; get(${badKey})`)), [1, 11]);
    assert.deepEqual(at(await only(`a;\r\nb;\rc;\nget(${badKey})`)), [4, 5]);
  });

  test('mends a whole file so that nothing is left to say', async () => {
    const source = [
      "export const completed = defineEvent('Payment.Completed.v1', schema);",
      'const stream = `banking.currency.v1-${tenant}-${id}`;',
      'const nested = `app:{${tenantOf(`sub:${a}:${b}:v1`)}}:banking:currency:v1:${id}`;',
      "await queue.add('send', {}, { jobId: `job:{${tenant}}:a:b:c:${id}` });",
    ].join('\n');
    const findings = await lintSource('a.ts', source);
    assert.deepEqual(
      findings.map(({ rule }) => rule),
      ['event-type', 'stream-name', 'redis-key', 'subscription-name', 'queue-name'],
    );
    // The outer mend quotes its inner expression as it was: the next run mends that one.
    let mended = source;
    for (let round = 0; round < 2; round += 1) {
      const left = await lintSource('a.ts', mended);
      mended = applySuggestions(
        mended,
        left.filter((outer) => !isInside(outer, left)),
      );
    }
    await assertClean(mended);
  });

  test('reads TypeScript, JSX, decorators and old scripts by the extension', async () => {
    await only(`const a = <T,>(x: T) => x; enum E { A = ${badKey} }`, {}, 'a.mts');
    await only(`const a = <div title=${badKey} />;`, {}, 'a.jsx');
    await only(`@Injectable() class A { @Input() key = ${badKey}; }`, {}, 'a.cts');
    await only(`with (x) { get(${badKey}); }`, {}, 'a.cjs');
  });

  test('limits itself to the rules that are asked for', async () => {
    const source = `get(${badKey}); defineEvent('Payment.Completed.v1', s);`;
    assert.equal((await only(source, { rules: ['event-type'] })).rule, 'event-type');
    assert.deepEqual(await lintSource('a.ts', source, { rules: ['subject'] }), []);
    // Without the rule that would speak first, the next one has its say.
    const queue = `new Queue(${badKey})`;
    assert.equal((await only(queue)).rule, 'queue-name');
    assert.equal((await only(queue, { rules: ['redis-key'] })).rule, 'redis-key');
  });

  test('shortens the text of a finding, not the finding', async () => {
    const finding = await only(`get('app:core:a:b:v1:${'x'.repeat(200)}')`);
    assert.equal(finding.text.length, 121);
    assert.equal(finding.end - finding.start, 218);
  });

  function at({ line, column }: Finding): readonly number[] {
    return [line, column];
  }

  function isInside(inner: Finding, all: readonly Finding[]): boolean {
    return all.some(
      (outer) => outer !== inner && outer.start <= inner.start && outer.end >= inner.end,
    );
  }
});

describe('suppressions', () => {
  const suppressed = (directive: string): string => `${directive}\nget(${badKey});`;

  test('silence a rule on the next line, with a reason', async () => {
    await assertClean(suppressed('// millrace-lint-disable-next-line redis-key -- legacy data'));
    await assertClean(suppressed('/* millrace-lint-disable-next-line redis-key -- legacy data */'));
    await assertClean(
      `// millrace-lint-disable-next-line redis-key, event-type -- both are old\nget(${badKey}, { type: 'Payment.Made.v1' });`,
    );
  });

  test('silence a rule in the whole file', () =>
    assertClean(
      `// millrace-lint-disable-file redis-key -- bad keys are tested here\n\nget(${badKey});`,
    ));

  test('do not reach further than the next line, nor other rules', async () => {
    const directive = '// millrace-lint-disable-next-line redis-key -- legacy';
    const far = await lintSource('a.ts', `${directive}\n\nget(${badKey});`);
    assert.deepEqual(
      far.map(({ rule }) => rule),
      ['suppression', 'redis-key'],
    );
    const other = await lintSource('a.ts', suppressed(directive.replace('redis-key', 'subject')));
    assert.deepEqual(
      other.map(({ rule }) => rule),
      ['suppression', 'redis-key'],
    );
  });

  test('need a reason and the name of a rule', async () => {
    for (const [directive, reason] of [
      ['// millrace-lint-disable-next-line redis-key', /needs its reason/],
      ['// millrace-lint-disable-next-line redis-key --', /needs its reason/],
      ['// millrace-lint-disable-next-line -- because', /names its rule/],
      ['// millrace-lint-disable-next-line redis-keys -- because', /no rule 'redis-keys'/],
    ] as const) {
      const [complaint, kept] = await lintSource('a.ts', suppressed(directive));
      assert.match(complaint?.reason ?? '', reason);
      assert.deepEqual([complaint?.rule, complaint?.severity], ['suppression', 'error']);
      assert.equal(kept?.rule, 'redis-key');
    }
  });

  test('that are not needed are a warning, unless their rule does not run', async () => {
    const source = '// millrace-lint-disable-next-line subject -- once\nconst a = 1;';
    const { rule, severity } = await only(source);
    assert.deepEqual([rule, severity], ['suppression', 'warning']);
    await assertClean(source, { rules: ['redis-key', 'suppression'] });
  });
});

describe('whatever a file holds', () => {
  test('a syntax error is a finding with its place', async () => {
    const finding = await only('const a = 1;\nconst = 2;');
    assert.deepEqual([finding.rule, finding.line, finding.severity], ['syntax', 2, 'error']);
  });

  test('a file that would take the parser down is a finding', async () => {
    for (const source of [
      '('.repeat(100_000),
      `${'['.repeat(50_000)}${']'.repeat(50_000)}`,
      `x = ${'a=>'.repeat(100_000)}a`,
      `x = 'a'${"+'a'".repeat(200_000)}`,
      `x = ${'!'.repeat(500_000)}a`,
    ]) {
      const finding = await only(source);
      assert.deepEqual([finding.rule, finding.severity], ['syntax', 'warning']);
      assert.match(finding.reason, /nests too deep/);
    }
  });

  test('drawings and encoded data are not nesting', () =>
    assertClean(`x = 'M${'1.5-2.25 '.repeat(20_000)}'; y = '${'aGVsbG8/'.repeat(20_000)}';`));

  test('long chains and many expressions are read', async () => {
    const long = `x = ${"'a' + ".repeat(3_000)}${badKey}`;
    await assertClean(long);
    await assertClean(
      `x = \`app:{\${t}}:b:c:v1:${'${id}'.repeat(200)}\`; y = a${'.b()'.repeat(3_000)};`,
    );
    await only(`x = a${'.b()'.repeat(3_000)}; get(${badKey})`);
  });

  test('private-use characters are not taken for expressions', () =>
    assertClean("x = 'app:\uE000:banking:currency:v1:\uE001'; y = `gbe.tasks.\uE000.${a}`;"));

  test('a name may be hidden in escapes', async () => {
    await only(String.raw`get('\x61pp:core:banking:currency:v1:USD')`);
    await only(String.raw`get('app\u003acore:banking:currency:v1:USD')`);
  });

  test('any text is linted without an exception', async () => {
    const words =
      'app: mq:{ }: gbe.tasks. .v1 - ` ${ } \' " + ( ) defineEvent( type: = a \\u 😀 sub: $ce- $et- ; ' +
      'new Queue( [ ].join(":") <A b= /> // millrace-lint-disable-next-line \uE000';
    const pieces = fc.constantFrom('\n', ' ', ...words.split(' '));
    const sources = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.array(pieces, { maxLength: 30 }).map((parts) => parts.join('')),
    );
    await fc.assert(
      fc.asyncProperty(sources, async (source) => {
        for (const { rule, line, column } of await lintSource('a.tsx', source)) {
          assert.ok(Object.hasOwn(lintRules, rule));
          assert.ok(line >= 1 && column >= 1);
        }
      }),
      { numRuns: propertyRuns(300) },
    );
  });

  test('any string that code writes down is judged without an exception', async () => {
    const names = fc.array(
      fc.constantFrom(
        'app',
        'mq',
        ':',
        '{',
        '}',
        '.',
        '-',
        'v1',
        'gbe',
        'tasks',
        '$et-',
        'sub',
        '*',
        '>',
        'X',
        '',
        '_',
        ' ',
        '${a}',
        '${b}',
      ),
      { maxLength: 14 },
    );
    await fc.assert(
      fc.asyncProperty(names, async (parts) => {
        const source = `defineEvent(0); x = { type: \`${parts.join('')}\`, jobId: \`${parts.join('')}\` };`;
        const findings = await lintSource('a.ts', source);
        // Whatever is suggested is code.
        const mended = await lintSource('a.ts', applySuggestions(source, findings));
        assert.deepEqual(
          mended.filter(({ rule }) => rule === 'syntax'),
          [],
        );
      }),
      { numRuns: propertyRuns(500) },
    );
  });
});
