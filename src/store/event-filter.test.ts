import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { hasCode } from '../foundation/error.ts';
import { compileFilter, filterLimits } from './event-filter.ts';

describe('compileFilter', () => {
  test('omits the parts that the filter does not use', () => {
    assert.deepEqual(compileFilter({ system: true }), {
      type: undefined,
      category: undefined,
      tenant: undefined,
      stream: undefined,
      given: { system: true },
    });
    const { type, stream, given, ...rest } = compileFilter({ category: 'a.b.v1', tenant: 'core' });
    assert.deepEqual(given, { category: 'a.b.v1', tenant: 'core' });
    assert.deepEqual(rest, { category: 'a.b.v1', tenant: 'core' });
    assert.equal(stream, undefined);
    assert.equal(type?.('account.opened.v1'), true);
    assert.equal(type?.('$metadata'), false);
  });

  test('an empty filter excludes only system events', () => {
    fc.assert(
      fc.property(fc.string(), (type) => {
        assert.equal(compileFilter().type?.(type), !type.startsWith('$'));
      }),
    );
  });

  test('prefixes are literal', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (prefix, rest) => {
        const { stream } = compileFilter({ streamPrefixes: [prefix] });
        assert.equal(stream?.(prefix + rest), true);
        assert.equal(stream?.(rest), rest.startsWith(prefix));
      }),
    );
  });

  test('a pattern matches like a JavaScript regular expression', () => {
    const piece = fc.constantFrom('a', 'b', '.', 'a+', '[ab]', '(a|b)', '\\.', 'b?', '^a', 'b$');
    fc.assert(
      fc.property(
        fc.array(piece, { minLength: 1, maxLength: 4 }),
        fc.array(fc.constantFrom('a', 'b', '.', '-'), { maxLength: 8 }),
        (pieces, letters) => {
          const [pattern, text] = [pieces.join(''), letters.join('')];
          const { stream } = compileFilter({ streamPattern: pattern });
          assert.equal(stream?.(text), new RegExp(pattern).test(text), `${pattern} on ${text}`);
        },
      ),
    );
  });

  test('look-aheads after a literal beginning match like in JavaScript', () => {
    const literal = fc.constantFrom('', 'a', 'ab', '\\.', 'a-');
    const piece = fc.constantFrom('a', 'b', '.', 'a+', '[ab)]', '(a|b)', '\\)', 'b?', 'b$', 'a|b');
    const pieces = fc.array(piece, { minLength: 1, maxLength: 3 }).map((each) => each.join(''));
    const ahead = fc
      .tuple(fc.constantFrom('!', '='), pieces)
      .map(([kind, of]) => `(?${kind}${of})`);
    const aheads = fc.array(ahead, { minLength: 1, maxLength: 2 }).map((each) => each.join(''));
    const rest = fc.constantFrom('', '.*', 'a', '(a|b)$', '.+-');
    fc.assert(
      fc.property(
        fc.tuple(literal, aheads, rest).map((parts) => `^${parts.join('')}`),
        fc.array(fc.constantFrom('a', 'b', '.', '-', ')'), { maxLength: 8 }),
        (streamPattern, letters) => {
          const text = letters.join('');
          const { stream } = compileFilter({ streamPattern });
          assert.equal(stream?.(text), new RegExp(streamPattern).test(text), streamPattern);
        },
      ),
    );
    for (const streamPattern of [
      '^(?!a)b|c',
      '^(?!a)*b',
      '^a+(?!b)',
      'a(?!b)',
      '^(?!a',
      '^(?<!a)',
    ]) {
      assert.throws(
        () => compileFilter({ streamPattern }),
        (error) => hasCode(error, 'FILTER_INVALID'),
        streamPattern,
      );
    }
  });

  test('a pattern with nested quantifiers matches in linear time', () => {
    const { stream } = compileFilter({ streamPattern: '^(a+)+$' });
    assert.equal(stream?.(`${'a'.repeat(50_000)}b`), false);
  });

  test('the error names the invalid part of the filter', () => {
    for (const part of ['typePattern', 'streamPattern']) {
      assert.throws(
        () => compileFilter({ [part]: '(' }),
        (error) =>
          hasCode(error, 'FILTER_INVALID') &&
          error.details['part'] === part &&
          error.cause instanceof Error,
      );
    }
    const types = Array.from({ length: filterLimits.listItemsMax + 1 }, String);
    assert.throws(
      () => compileFilter({ types }),
      (error) => hasCode(error, 'FILTER_INVALID'),
    );
  });
});
