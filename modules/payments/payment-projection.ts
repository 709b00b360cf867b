// `app:{core}:paymenthub:payment:v1:<paymentId>`: a set for each status, and all of them by their last change.

import { projection, readModel, type ProjectedEvent } from 'millrace/projections';
import {
  paymentStatuses,
  type PaymentOrder,
  type PaymentStatus,
  type paymentFailed,
  type paymentProcessed,
} from './payment.ts';

export interface PaymentDocument extends PaymentOrder {
  readonly status: PaymentStatus;
  readonly requestedAt: string;
  readonly updatedAt: string;
  /** What the provider calls it. */
  readonly reference?: string;
  /** Why it failed. */
  readonly reason?: string;
}

type Requested = ProjectedEvent<PaymentOrder>;
type Processed = ProjectedEvent<ReturnType<typeof paymentProcessed.parse>>;
type Failed = ProjectedEvent<ReturnType<typeof paymentFailed.parse>>;

/** The next status, with what the event adds to the document. */
function became<Payload>(
  status: PaymentStatus,
  more: (payload: Payload) => Partial<PaymentDocument> = () => ({}),
) {
  return (
    before: PaymentDocument | null,
    { payload, occurredAt }: ProjectedEvent<Payload>,
  ): PaymentDocument | null =>
    before === null ? null : { ...before, ...more(payload), status, updatedAt: occurredAt };
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
    'payment.queued.v1': became('queued'),
    'payment.processed.v1': became<Processed['payload']>('processed', ({ reference }) => ({
      reference,
    })),
    'payment.completed.v1': became('completed'),
    'payment.failed.v1': became<Failed['payload']>('failed', ({ reason }) => ({ reason })),
  },
});
