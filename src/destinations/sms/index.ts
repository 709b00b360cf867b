export { smsDestination, type Sms, type SmsOptions, type SmsProvider } from './sms-destination.ts';
export { twilioProvider, type TwilioOptions } from './twilio-provider.ts';
