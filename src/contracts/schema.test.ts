import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compileSchema } from './schema.ts';
import { Type } from './type.ts';

test('the description of a field is part of the sentence about its problem', () => {
  const { problems } = compileSchema(
    Type.Object({
      id: Type.String({ pattern: '^a$', description: 'A UUID' }),
      cursor: Type.Integer({ description: 'The cursor of the previous page.' }),
      limit: Type.Integer({ description: 'Default: 100.' }),
    }),
  );
  assert.deepEqual(problems({ id: 'b', cursor: 'c', limit: 'd' }), [
    { path: '/id', message: 'must be a UUID' },
    { path: '/cursor', message: 'must be the cursor of the previous page' },
    { path: '/limit', message: 'must be integer' },
  ]);
});
