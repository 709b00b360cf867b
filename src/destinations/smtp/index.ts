export { renderMail, type MailTemplate } from './mail-template.ts';
export {
  smtpDestination,
  smtpLimits,
  type Mail,
  type MailTransport,
  type SmtpOptions,
} from './destination.ts';
