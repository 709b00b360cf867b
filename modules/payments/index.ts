export { payments, paymentsLimits, type PaymentsOptions } from './payments.ts';
export {
  createCurrency,
  currency,
  currencyCreated,
  currencyUpdated,
  updateCurrency,
  currencyProjection,
  type CurrencyDocument,
} from './currency.ts';
export {
  account,
  openAccount,
  releaseAmount,
  reserveAmount,
  settleAmount,
  accountProjection,
  type AccountDocument,
} from './account.ts';
export {
  completePayment,
  failPayment,
  payment,
  paymentCompleted,
  paymentFailed,
  paymentProcessed,
  paymentQueued,
  paymentRequested,
  processPayment,
  queuePayment,
  requestPayment,
  withdrawPayment,
  type PaymentOrder,
  type PaymentStatus,
  paymentProjection,
  type PaymentDocument,
} from './payment.ts';
export {
  type Charge,
  type ChargeAnswer,
  type PaymentProvider,
  pretendProvider,
  type PretendOptions,
  type PretendProvider,
} from './payment-provider.ts';
export { processJobId, processQueue, providerJobs } from './payment-outbox.ts';
export { samplePayments, type SampleOptions } from './sample-payments.ts';
