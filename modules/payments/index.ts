// The names that applications use.

export { openAccount, type AccountDocument } from './account.ts';
export { createCurrency } from './currency.ts';
export { processJobId } from './payment-outbox.ts';
export {
  pretendProvider,
  type Charge,
  type ChargeResult,
  type PaymentProvider,
  type PretendProvider,
} from './payment-provider.ts';
export { requestPayment, type PaymentDocument } from './payment.ts';
export { payments } from './payments.ts';
