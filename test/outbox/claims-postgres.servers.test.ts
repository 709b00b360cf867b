import { sharedPostgres } from '../../src/testing/servers/shared-servers.ts';
import { claimCases } from './claim-cases.ts';

claimCases('postgres', async () => (await sharedPostgres()).url);
