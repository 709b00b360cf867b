import { test } from 'node:test';
import { given } from 'millrace/testing';
import {
  beginAttempt,
  createRequest,
  deferAttempt,
  queueRequest,
  recordFailed,
  recordSent,
  requestCreated,
  requestFailed,
  requestQueued,
  requestSent,
  requestUpdated,
  updateRequest,
} from './message-request-events.ts';
import { messageRequest } from './message-request.ts';

const content = { workspaceCode: 'acme', templateCode: 'paid', data: { by: 'Ada' } };
const created = [requestCreated(content), requestQueued({ round: 1 })];
const channelId = 'C0ORDERS';
const begun = (fence: string, attempt = 1) =>
  requestUpdated({ change: 'attempt', attempt, fence, channelId });
const deferred = (fields: { readonly mayBePosted: boolean; readonly counts: boolean }) =>
  requestUpdated({ change: 'deferred', code: 'http-502', ...fields });
const failure = { code: 'channel_not_found', mayBePosted: false };
const posted = { ts: '1.2', channelId };

test('creating a request also queues it, once', () => {
  given(messageRequest, []).when(createRequest(content)).then(created);
  given(messageRequest, created)
    .when(createRequest(content))
    .thenRejected('message-request-exists');
});

test('delay, priority and thread are recorded when a request is queued', () => {
  const nowMs = Date.parse('2026-01-01T00:00:00.000Z');
  const request = { ...content, threadTs: '17.1', priority: 3, delayMs: 60_000 };
  given(messageRequest, [])
    .when(createRequest(request), { nowMs })
    .then([
      requestCreated({ ...content, threadTs: '17.1' }),
      requestQueued({ round: 1, priority: 3, dueAt: '2026-01-01T00:01:00.000Z', threadTs: '17.1' }),
    ]);
});

test('the holder of the lock records an attempt before the call', () => {
  given(messageRequest, created)
    .when(beginAttempt({ fence: 'a', channelId }))
    .then([begun('a')])
    .thenState(
      ({ mayBePosted, attempts, channels }) =>
        mayBePosted && attempts === 1 && channels[0] === channelId,
    );
  given(messageRequest, [...created, begun('a')])
    .when(beginAttempt({ fence: 'a', channelId }))
    .then([]);
  given(messageRequest, [...created, requestSent(posted)])
    .when(beginAttempt({ fence: 'b', channelId }))
    .thenRejected('message-request-sent');
  given(messageRequest, [])
    .when(beginAttempt({ fence: 'a', channelId }))
    .thenRejected('message-request-unknown');
});

test('an open attempt shows the next worker that the message may be posted, and since when', () => {
  given(messageRequest, [...created, begun('a')])
    .when(beginAttempt({ fence: 'b', channelId }))
    .then([begun('b', 2)])
    .thenState(({ mayBePosted, fence }) => mayBePosted && fence === 'b');
});

test('an attempt that posted nothing needs no search, and a rate limit does not count as an attempt', () => {
  given(messageRequest, [...created, begun('a')])
    .when(deferAttempt({ fence: 'a', code: 'http-502', mayBePosted: false, counts: true }))
    .then([deferred({ mayBePosted: false, counts: true })])
    .thenState(
      ({ mayBePosted, attempts, channels }) =>
        !mayBePosted && attempts === 1 && channels.length === 0,
    );
  given(messageRequest, [
    ...created,
    begun('a'),
    deferred({ mayBePosted: false, counts: false }),
  ]).thenState(({ attempts }) => attempts === 0);
  given(messageRequest, [
    ...created,
    begun('a'),
    deferred({ mayBePosted: true, counts: true }),
  ]).thenState(({ mayBePosted, fence }) => mayBePosted && fence === undefined);
});

test('a worker that lost its lock cannot close the attempt', () => {
  const taken = [...created, begun('a'), begun('b', 2)];
  given(messageRequest, taken)
    .when(deferAttempt({ fence: 'a', code: 'http-502', mayBePosted: false, counts: true }))
    .then([]);
  given(messageRequest, taken)
    .when(recordFailed({ fence: 'a', ...failure }))
    .then([]);
  given(messageRequest, taken)
    .when(recordFailed({ fence: 'b', ...failure }))
    .then([requestFailed(failure)]);
});

test('a confirmed post is recorded once, also without the lock', () => {
  given(messageRequest, [...created, begun('a'), begun('b', 2)])
    .when(recordSent(posted))
    .then([requestSent(posted)]);
  given(messageRequest, [...created, requestFailed(failure)])
    .when(recordSent(posted))
    .then([requestSent(posted)]);
  given(messageRequest, [...created, requestSent(posted)])
    .when(recordSent(posted))
    .then([]);
  given(messageRequest, [...created, requestSent(posted)])
    .when(recordFailed({ fence: 'a', ...failure }))
    .then([]);
});

test('a request can fail before its first attempt', () => {
  given(messageRequest, created)
    .when(recordFailed({ fence: 'a', code: 'template-data-missing', mayBePosted: false }))
    .then([requestFailed({ code: 'template-data-missing', mayBePosted: false })]);
});

test('a failed request is queued again in a new round, a queued one is not', () => {
  const failed = [...created, requestFailed(failure)];
  given(messageRequest, failed)
    .when(queueRequest({}))
    .then([requestQueued({ round: 2 })]);
  given(messageRequest, created).when(queueRequest({})).then([]);
  given(messageRequest, [...created, requestSent(posted)])
    .when(queueRequest({}))
    .thenRejected('message-request-sent');
  const unclear = requestFailed({ code: 'outcome-unknown', mayBePosted: true });
  given(messageRequest, [...created, begun('a'), unclear, requestQueued({ round: 2 })]).thenState(
    ({ mayBePosted, channels, attempts }) => mayBePosted && channels.length === 1 && attempts === 0,
  );
});

test('a request can be changed until it may have been posted, and a failed one is queued again', () => {
  const changed = { ...content, templateCode: 'late', channelCode: 'orders' };
  const change = updateRequest({ templateCode: 'late', channelCode: 'orders' });
  given(messageRequest, created)
    .when(change)
    .then([requestUpdated({ change: 'content', ...changed })]);
  given(messageRequest, [...created, requestFailed(failure)])
    .when(change)
    .then([requestUpdated({ change: 'content', ...changed }), requestQueued({ round: 2 })]);
  given(messageRequest, [...created, begun('a')])
    .when(change)
    .thenRejected('message-request-under-way');
  given(messageRequest, created)
    .when(updateRequest({ templateCode: null }))
    .then([requestUpdated({ change: 'content', workspaceCode: 'acme', data: { by: 'Ada' } })]);
});
