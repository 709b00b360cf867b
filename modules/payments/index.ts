export { payments, paymentsLimits, type PaymentsOptions } from './payments.ts';
export {
  createCurrency,
  currency,
  currencyCreated,
  currencyUpdated,
  updateCurrency,
} from './currency.ts';
export { currencyProjection, type CurrencyDocument } from './currency-projection.ts';
export { account, openAccount, releaseAmount, reserveAmount, settleAmount } from './account.ts';
export { accountProjection, type AccountDocument } from './account-projection.ts';
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
} from './payment.ts';
export { paymentProjection, type PaymentDocument } from './payment-projection.ts';
export type { Charge, ChargeAnswer, PaymentProvider } from './payment-provider.ts';
export { processJobId, processQueue, providerJobs } from './payment-queue.ts';
export { pretendProvider, type PretendOptions, type PretendProvider } from './pretend-provider.ts';
export { samplePayments, type SampleOptions } from './sample-payments.ts';
