# One image for all that runs: the API, the worker, the migration and the commands. docker-compose.yml says which does what.

FROM node:22-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --include=dev
COPY . .
RUN npm run build

FROM node:22-bookworm-slim AS modules
WORKDIR /app
COPY package.json package-lock.json ./
# Without the optional ones too: @prisma/client has its development kit for an optional peer, 300 MB, and PostgreSQL's
# programs are there for `npm start` alone.
RUN npm ci --ignore-scripts --omit=dev --omit=optional

FROM node:22-bookworm-slim AS runtime
WORKDIR /app
ENV NODE_ENV=production HOST=0.0.0.0 PORT=4000 METRICS_PORT=9464
COPY --from=modules /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY package.json ./
COPY deploy/healthcheck.mjs ./
# The image's user `node`. Said as a number, so that also Kubernetes sees that it isn't root.
USER 1000:1000
EXPOSE 4000 9464
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 CMD ["node", "healthcheck.mjs", "4000"]
CMD ["node", "--enable-source-maps", "dist/src/main.js"]
