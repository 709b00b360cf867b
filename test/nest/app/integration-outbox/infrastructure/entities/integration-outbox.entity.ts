export { IntegrationOutboxEntity } from 'millrace/nest/typeorm';
