export { TypeormOutboxRepository } from 'millrace/nest/typeorm';
