import { MemoryRemote } from '../../support/memory-remote.ts';
import { remoteContract } from './remote.contract.ts';

remoteContract('in memory', async () => ({ remote: new MemoryRemote(), async close() {} }));
