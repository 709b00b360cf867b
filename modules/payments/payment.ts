// A payment: requested → queued → processed → completed, or failed. The aggregate and its read model.

import { defineAggregate, CommandRejected } from 'millrace/aggregates';
import { defineCommand, defineEvent } from 'millrace/contracts';
import { projection, readModel, type ProjectedEvent } from 'millrace/projections';
import { z } from 'zod';
import { amount, currencyCode, streamId } from './currency.ts';

const order = z.object({
  /** The account that pays. */
  account: streamId,
  amount,
  currency: currencyCode,
  /** The id of the receiver, without personal data. */
  creditor: streamId,
});
/** The reference of the provider. */
const receipt = z.object({ reference: z.string().min(1).max(200) });
const failure = z.object({ reason: z.string().min(1).max(200) });
const nothing = z.object({});

export type PaymentOrder = z.infer<typeof order>;

export const paymentRequested = defineEvent('payment.requested.v1', order);
export const paymentQueued = defineEvent('payment.queued.v1', order);
export const paymentProcessed = defineEvent('payment.processed.v1', receipt);
export const paymentCompleted = defineEvent('payment.completed.v1', order.extend(receipt.shape));
export const paymentFailed = defineEvent(
  'payment.failed.v1',
  // Withdrawn: not declined by the provider, which may therefore have charged the account.
  failure.extend({ withdrawn: z.boolean() }),
);

export const requestPayment = defineCommand('payment.request', order);
export const queuePayment = defineCommand('payment.queue', nothing);
/** The provider has accepted the payment. */
export const processPayment = defineCommand('payment.process', receipt);
export const completePayment = defineCommand('payment.complete', nothing);
/** The provider or the account has declined the payment. */
export const failPayment = defineCommand('payment.fail', failure);
/** Cancels a payment that is not completed. */
export const withdrawPayment = defineCommand('payment.withdraw', failure);

const paymentStatuses = ['requested', 'queued', 'processed', 'completed', 'failed'] as const;
export type PaymentStatus = (typeof paymentStatuses)[number];

interface PaymentState {
  readonly status: PaymentStatus | 'unknown';
  readonly order?: PaymentOrder | undefined;
  readonly reference?: string | undefined;
}

const unknown: PaymentState = { status: 'unknown' };

export const payment = defineAggregate({
  bc: 'paymenthub',
  name: 'payment',
  version: 1,
  events: [paymentRequested, paymentQueued, paymentProcessed, paymentCompleted, paymentFailed],
  commands: [
    requestPayment,
    queuePayment,
    processPayment,
    completePayment,
    failPayment,
    withdrawPayment,
  ],
  initial: unknown,
  evolve: {
    'payment.requested.v1': (_state, each): PaymentState => ({ status: 'requested', order: each }),
    'payment.queued.v1': (state): PaymentState => ({ ...state, status: 'queued' }),
    'payment.processed.v1': (state, { reference }): PaymentState => ({
      ...state,
      status: 'processed',
      reference,
    }),
    'payment.completed.v1': (state): PaymentState => ({ ...state, status: 'completed' }),
    'payment.failed.v1': (state): PaymentState => ({ ...state, status: 'failed' }),
  },
  // A repeated command has no effect, also without an idempotency key.
  decide: {
    'payment.request': (each, { status }, { id }) => {
      if (status !== 'unknown')
        throw new CommandRejected('payment-exists', `Payment ${id} already exists.`);
      return paymentRequested(each);
    },
    'payment.queue': (_payload, state) =>
      state.status === 'queued' ? [] : paymentQueued(orderOf(state, 'queue', ['requested'])),
    'payment.process': (each, state) => {
      if (state.status === 'processed' || state.status === 'completed') return [];
      orderOf(state, 'process', ['queued']);
      return paymentProcessed(each);
    },
    'payment.complete': (_payload, state) => {
      if (state.status === 'completed') return [];
      const each = orderOf(state, 'complete', ['processed']);
      return paymentCompleted({ ...each, reference: state.reference ?? '' });
    },
    'payment.fail': (each, state) => {
      if (state.status === 'failed') return [];
      orderOf(state, 'fail', ['requested', 'queued']);
      return paymentFailed({ ...each, withdrawn: false });
    },
    'payment.withdraw': (each, state) => {
      if (state.status === 'failed') return [];
      orderOf(state, 'withdraw', ['requested', 'queued', 'processed']);
      return paymentFailed({ ...each, withdrawn: true });
    },
  },
});

function orderOf(
  { status, order: each }: PaymentState,
  verb: string,
  from: readonly PaymentStatus[],
): PaymentOrder {
  if (each !== undefined && from.some((allowed) => allowed === status)) return each;
  throw new CommandRejected(
    `payment-${status}`,
    `Cannot ${verb} a payment with status ${status}.`,
    {
      status,
    },
  );
}

export interface PaymentDocument extends PaymentOrder {
  readonly status: PaymentStatus;
  readonly requestedAt: string;
  readonly updatedAt: string;
  /** The reference of the provider. */
  readonly reference?: string;
  /** The cause of the failure. */
  readonly reason?: string;
}

type Requested = ProjectedEvent<PaymentOrder>;
type Processed = ProjectedEvent<ReturnType<typeof paymentProcessed.parse>>;
type Failed = ProjectedEvent<ReturnType<typeof paymentFailed.parse>>;

/** Sets the status and the fields that the event adds. */
function setStatus<Payload>(
  status: PaymentStatus,
  fields: (payload: Payload) => Partial<PaymentDocument> = () => ({}),
) {
  return (
    before: PaymentDocument | null,
    { payload, occurredAt }: ProjectedEvent<Payload>,
  ): PaymentDocument | null =>
    before === null ? null : { ...before, ...fields(payload), status, updatedAt: occurredAt };
}

export const paymentProjection = projection({
  name: 'sub:payments:payment-projection:v1',
  readModel: readModel<PaymentDocument>({
    bc: 'paymenthub',
    aggregate: 'payment',
    version: 1,
    sets: Object.fromEntries(
      paymentStatuses.map((status) => [status, (each: PaymentDocument) => each.status === status]),
    ),
    ranges: { updated: ({ updatedAt }) => Date.parse(updatedAt) },
  }),
  on: {
    'payment.requested.v1': (_before, { payload, occurredAt }: Requested): PaymentDocument => ({
      ...payload,
      status: 'requested',
      requestedAt: occurredAt,
      updatedAt: occurredAt,
    }),
    'payment.queued.v1': setStatus('queued'),
    'payment.processed.v1': setStatus<Processed['payload']>('processed', ({ reference }) => ({
      reference,
    })),
    'payment.completed.v1': setStatus('completed'),
    'payment.failed.v1': setStatus<Failed['payload']>('failed', ({ reason }) => ({ reason })),
  },
});
