import { sharedPostgres } from '../../src/testing/servers/shared-servers.ts';
import { archiveCases } from './archive-cases.ts';

archiveCases('postgres', async () => (await sharedPostgres()).url);
