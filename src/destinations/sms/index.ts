export { smsDestination, type Sms, type SmsOptions, type SmsProvider } from './destination.ts';
export { twilioProvider, type TwilioOptions } from './twilio.ts';
