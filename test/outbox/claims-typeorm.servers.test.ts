import { sharedPostgres } from '../../src/testing/servers/shared-servers.ts';
import { claimCases } from './claim-cases.ts';

claimCases('typeorm', async () => (await sharedPostgres()).url);
