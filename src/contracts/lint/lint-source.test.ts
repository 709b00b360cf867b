import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { lintRules, type Finding, type LintOptions } from './finding.ts';
import { lintSource } from './lint-source.ts';
import { propertyRuns } from '../../testing/property-runs.ts';

const badKey = "'app:core:banking:currency:v1:USD'";

async function assertClean(source: string, options: LintOptions = {}): Promise<void> {
  assert.deepEqual(await lintSource('a.tsx', source, options), []);
}

function applySuggestions(source: string, findings: readonly Finding[]): string {
  return findings.toReversed().reduce((text, { start, end, suggestion }) => {
    return suggestion === undefined ? text : text.slice(0, start) + suggestion + text.slice(end);
  }, source);
}

/** The only finding in the source. */
async function only(source: string, options: LintOptions = {}, file = 'a.ts'): Promise<Finding> {
  const findings = await lintSource(file, source, options);
  assert.equal(findings.length, 1, JSON.stringify(findings));
  return findings[0] as Finding;
}

describe('the linter', () => {
  test('reports the location, the code, the reason and the suggestion', async () => {
    assert.deepEqual(await only(`const a = 1;\n  get(${badKey});\n`, {}, 'src/a.ts'), {
      rule: 'redis-key',
      severity: 'error',
      file: 'src/a.ts',
      line: 2,
      column: 7,
      start: 19,
      end: 53,
      text: badKey,
      reason: 'the tenant must be in braces, {core}, to keep its keys in one slot of a cluster',
      suggestion: "'app:{core}:banking:currency:v1:USD'",
    });
  });

  test('counts columns after a byte order mark, wide characters and all kinds of line breaks', async () => {
    assert.deepEqual(at(await only(`\uFEFFget(${badKey})`)), [1, 5]);
    assert.deepEqual(at(await only(`'😀'; get(${badKey})`)), [1, 11]);
    assert.deepEqual(at(await only(`a;\r\nb;\rc;\nget(${badKey})`)), [4, 5]);
  });

  test('parses TypeScript, JSX, decorators and CommonJS scripts by the extension', async () => {
    await only(`const a = <T,>(x: T) => x; enum E { A = ${badKey} }`, {}, 'a.mts');
    await only(`const a = <div title=${badKey} />;`, {}, 'a.jsx');
    await only(`@Injectable() class A { @Input() key = ${badKey}; }`, {}, 'a.cts');
    await only(`with (x) { get(${badKey}); }`, {}, 'a.cjs');
  });

  test('reports only the requested rules', async () => {
    const source = `get(${badKey}); defineEvent('Payment.Completed.v1', s);`;
    assert.equal((await only(source, { rules: ['event-type'] })).rule, 'event-type');
    assert.deepEqual(await lintSource('a.ts', source, { rules: ['subject'] }), []);
    // If the first rule is off, the next rule reports the string.
    const queue = `new Queue(${badKey})`;
    assert.equal((await only(queue)).rule, 'queue-name');
    assert.equal((await only(queue, { rules: ['redis-key'] })).rule, 'redis-key');
  });

  test('shortens the text of a finding, not its range', async () => {
    const finding = await only(`get('app:core:a:b:v1:${'x'.repeat(200)}')`);
    assert.equal(finding.text.length, 121);
    assert.equal(finding.end - finding.start, 218);
  });

  function at({ line, column }: Finding): readonly number[] {
    return [line, column];
  }
});

describe('suppressions', () => {
  const suppressed = (directive: string): string => `${directive}\nget(${badKey});`;

  test('suppress a rule on the next line', async () => {
    await assertClean(suppressed('// millrace-lint-disable-next-line redis-key -- legacy data'));
    await assertClean(suppressed('/* millrace-lint-disable-next-line redis-key -- legacy data */'));
    await assertClean(
      `// millrace-lint-disable-next-line redis-key, event-type -- both are old\nget(${badKey}, { type: 'Payment.Made.v1' });`,
    );
  });

  test('suppress a rule in the whole file', () =>
    assertClean(
      `// millrace-lint-disable-file redis-key -- bad keys are tested here\n\nget(${badKey});`,
    ));

  test('apply to the next line and the named rules only', async () => {
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

  test('need a reason and a rule', async () => {
    for (const [directive, reason] of [
      ['// millrace-lint-disable-next-line redis-key', /needs a reason/],
      ['// millrace-lint-disable-next-line redis-key --', /needs a reason/],
      ['// millrace-lint-disable-next-line -- because', /needs a rule/],
      ['// millrace-lint-disable-next-line redis-keys -- because', /unknown rule 'redis-keys'/],
    ] as const) {
      const [problem, kept] = await lintSource('a.ts', suppressed(directive));
      assert.match(problem?.reason ?? '', reason);
      assert.deepEqual([problem?.rule, problem?.severity], ['suppression', 'error']);
      assert.equal(kept?.rule, 'redis-key');
    }
  });

  test('are reported as warnings when unused, unless their rule is off', async () => {
    const source = '// millrace-lint-disable-next-line subject -- once\nconst a = 1;';
    const { rule, severity } = await only(source);
    assert.deepEqual([rule, severity], ['suppression', 'warning']);
    await assertClean(source, { rules: ['redis-key', 'suppression'] });
  });
});

describe('source files with errors, long expressions or unusual characters', () => {
  test('a syntax error is a finding', async () => {
    const finding = await only('const a = 1;\nconst = 2;');
    assert.deepEqual([finding.rule, finding.line, finding.severity], ['syntax', 2, 'error']);
  });

  test('long chains and many expressions are read', async () => {
    const long = `x = ${"'a' + ".repeat(3_000)}${badKey}`;
    await assertClean(long);
    await assertClean(
      `x = \`app:{\${t}}:b:c:v1:${'${id}'.repeat(200)}\`; y = a${'.b()'.repeat(3_000)};`,
    );
    await only(`x = a${'.b()'.repeat(3_000)}; get(${badKey})`);
  });

  test('private-use characters do not count as expressions', () =>
    assertClean("x = 'app:\uE000:banking:currency:v1:\uE001'; y = `gbe.tasks.\uE000.${a}`;"));

  test('escapes in a name are decoded', async () => {
    await only(String.raw`get('\x61pp:core:banking:currency:v1:USD')`);
    await only(String.raw`get('app\u003acore:banking:currency:v1:USD')`);
  });

  test('linting any string does not throw', async () => {
    const words =
      'app: mq:{ }: gbe.tasks. .v1 - ` ${ } \' " + ( ) defineEvent( type: = a \\u 😀 sub: $ce- $et- ; ' +
      'new Queue( [ ].join(":") <A b= /> // millrace-lint-disable-next-line \uE000';
    const pieces = fc.constantFrom('\n', ' ', ...words.split(' '));
    const sources = fc.oneof(
      fc.string({ unit: 'grapheme' }),
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

  test('every suggestion is valid code', async () => {
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
        const fixed = await lintSource('a.ts', applySuggestions(source, findings));
        assert.deepEqual(
          fixed.filter(({ rule }) => rule === 'syntax'),
          [],
        );
      }),
      { numRuns: propertyRuns(500) },
    );
  });
});
