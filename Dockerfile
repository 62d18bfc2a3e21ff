# Build with the development dependencies, run without them. Neither stage needs a compiler.
FROM node:24-bookworm-slim AS build
WORKDIR /davgate
COPY package.json package-lock.json ./
# The postinstall script, which does nothing on Node 24.
COPY src/util/sqlite/node20 src/util/sqlite/node20
RUN npm ci
COPY tsconfig.json ./
COPY src src
RUN npm run build && npm prune --omit=dev && chmod +x dist/cli/main.js

FROM node:24-bookworm-slim
# MALLOC_…: freed buffers go back to the system; with --max-semi-space-size below, a third less memory.
ENV NODE_ENV=production \
    MALLOC_ARENA_MAX=2 \
    MALLOC_MMAP_THRESHOLD_=131072 \
    DAVGATE_LISTEN=0.0.0.0:8765 \
    DAVGATE_DATA_DIR=/data \
    DAVGATE_CACHE_DIR=/data/cache
WORKDIR /davgate
COPY --from=build /davgate/package.json ./
COPY --from=build /davgate/node_modules node_modules
COPY --from=build /davgate/dist dist
RUN mkdir /data && chown node:node /data && ln -s /davgate/dist/cli/main.js /usr/local/bin/davgate
USER node
# The only place that is written to: the rest may be read-only, but for /tmp.
VOLUME ["/data"]
EXPOSE 8765
# By http or, where that is not spoken, https, with whatever certificate.
HEALTHCHECK --interval=30s --timeout=5s \
  CMD ["node", "-e", "const port = process.env.DAVGATE_LISTEN.split(':').pop(); const ask = (scheme, otherwise) => require(scheme).get({ host: '127.0.0.1', port, path: '/.davgate/healthz', rejectUnauthorized: false }, (answer) => process.exit(answer.statusCode === 200 ? 0 : 1)).on('error', otherwise); ask('http', () => ask('https', () => process.exit(1)))"]
ENTRYPOINT ["node", "--max-semi-space-size=2", "dist/cli/main.js"]
