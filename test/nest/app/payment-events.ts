import { defineEvent, type EventOf } from 'millrace/contracts';
import { z } from 'zod';

export const paymentCompleted = defineEvent(
  'payment.completed.v1',
  z.object({ amount: z.number() }),
);

export type PaymentCompleted = EventOf<typeof paymentCompleted>['payload'];
