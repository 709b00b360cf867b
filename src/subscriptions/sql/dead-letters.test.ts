import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dialect } from '../../engines/sqlite/connection/database.ts';
import { newLetter } from '../../testing/conformance/subscriptions/fixture.ts';
import { sqlDeadLetters } from './dead-letters.ts';

test('a stored dead letter is returned although the database fails after the commit', async () => {
  let isCommitted = false;
  const deadLetters = sqlDeadLetters({
    dialect,
    async run(statements) {
      if (isCommitted) throw new Error('the connection was lost');
      isCommitted = statements.length > 1;
      return statements.map(() => []);
    },
  });
  const fence = { subscription: 'sub:core-lookup:currency-projection:v1', shard: 0, token: 1 };
  const added = newLetter(fence);
  const { letter, isNew } = await deadLetters.add(fence, added);
  assert.deepEqual(
    [letter.id, letter.status, letter.attempts, isNew],
    [added.id, 'pending', 6, true],
  );
});
