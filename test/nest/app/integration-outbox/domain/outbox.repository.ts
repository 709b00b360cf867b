export { OutboxRepository } from 'millrace/nest';
