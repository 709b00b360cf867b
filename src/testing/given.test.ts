import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  account,
  deposit,
  deposited,
  feeCharged,
  open,
  opened,
  rename,
  withdraw,
  withdrawn,
} from './support/aggregates/example-account.ts';
import { given } from './given.ts';

const history = [opened({ owner: 'ada' }), deposited({ amount: 100 })];

/** Returns the message of the error that the work throws. */
function failureOf(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    assert.ok(error instanceof Error);
    return error.message;
  }
  return assert.fail('nothing was thrown');
}

test('compares the events one by one', () => {
  given(account, history)
    .when(withdraw({ amount: 60 }))
    .then([withdrawn({ amount: 60 }), feeCharged({ amount: 1 })])
    .thenState({ owner: 'ada', balance: 39 });
});

test('an empty list expects no events', () => {
  given(account, history)
    .when(rename({ owner: 'ada' }))
    .then([]);
});

test('checks a state by value or predicate, before and after the command', () => {
  given(account, history).thenState({ owner: 'ada', balance: 100 });
  given(account, history)
    .when(deposit({ amount: 1 }))
    .thenState(({ balance }) => balance === 101)
    .thenState(({ owner }) => owner === 'ada');
});

test('checks a rejection by its reason, code or message', () => {
  const tooMuch = given(account, history).when(withdraw({ amount: 500 }));
  tooMuch.thenRejected();
  tooMuch.thenRejected('insufficient-funds');
  tooMuch.thenRejected('COMMAND_REJECTED');
  tooMuch.thenRejected(/only 100 left/);
});

test('shows unexpected events as a difference', () => {
  const message = failureOf(() =>
    given(account, history)
      .when(deposit({ amount: 5 }))
      .then([deposited({ amount: 6 })]),
  );
  assert.match(message, /\+ +amount: 5/);
  assert.match(message, /- +amount: 6/);
});

test('shows an unexpected state as a difference', () => {
  const message = failureOf(() => given(account, history).thenState({ owner: 'ada', balance: 1 }));
  assert.match(message, /\+ +balance: 100/);
  assert.match(message, /- +balance: 1\b/);
  assert.match(
    failureOf(() => given(account, history).thenState(({ balance }) => balance > 500)),
    /balance > 500.*balance: 100/,
  );
});

test('shows the reason of an unexpected rejection', () => {
  const rejection = given(account, history).when(withdraw({ amount: 500 }));
  assert.match(
    failureOf(() => rejection.then([withdrawn({ amount: 500 })])),
    /account.withdrawn.v1.*but got 'insufficient-funds': only 100 left/s,
  );
  assert.match(
    failureOf(() => rejection.thenState({ owner: 'ada', balance: 0 })),
    /expected a state, but got 'insufficient-funds'/,
  );
});

test('shows the events if a rejection was expected', () => {
  const accepted = given(account, history).when(deposit({ amount: 5 }));
  assert.match(
    failureOf(() => accepted.thenRejected('insufficient-funds')),
    /expected a rejection with 'insufficient-funds', but this happened: .*account.deposited.v1/s,
  );
});

test('shows a rejection with another reason than expected', () => {
  const rejection = given(account, history).when(open({ owner: 'bob' }));
  assert.match(
    failureOf(() => rejection.thenRejected('insufficient-funds')),
    /expected a rejection with 'insufficient-funds', but got 'already-open'/,
  );
  assert.match(
    failureOf(() => rejection.thenRejected(/left/)),
    /with \/left\/, but got 'already-open'/,
  );
});

test('does not count a programming error as a rejection', () => {
  const broken = { ...account, decide: () => assert.fail('a mistake') };
  const outcome = given(broken, history).when(deposit({ amount: 5 }));
  assert.match(
    failureOf(() => outcome.thenRejected()),
    /but got a mistake/,
  );
});

test('awaiting `when` fails with a hint', async () => {
  const middle: unknown = given(account, history).when(deposit({ amount: 5 }));
  await assert.rejects(Promise.resolve(middle), /end it with \.then\(/);
});

test('a complete chain can be returned to a test runner', async () => {
  const returned: unknown = given(account, history)
    .when(deposit({ amount: 5 }))
    .then([deposited({ amount: 5 })]);
  assert.ok(typeof returned === 'object' && returned !== null && !('then' in returned));
});
