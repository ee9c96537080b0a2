// What an application of kafkajs's interface does: transactions, a group, an idempotent producer, the admin client.
// `stack` says how a library with this interface is asked for what differs.
'use strict'

const assert = require('node:assert/strict')
const { randomBytes } = require('node:crypto')
const { setTimeout: sleep } = require('node:timers/promises')

const RUN = randomBytes(4).toString('hex')
const WAIT_MS = 30000
const SCENARIO_MS = 120000
const LAST = 'the last one' // written behind all that is read, since consumers are not told of markers

const numbers = (from, to, step = 1) => {
  const values = []
  for (let n = from; n < to; n += step) values.push(String(n))
  return values
}

async function eventually(what, look, wanted) {
  const until = Date.now() + WAIT_MS
  for (;;) {
    const seen = await look()
    try {
      return assert.deepEqual(seen, wanted, what)
    } catch (failure) {
      if (Date.now() > until) throw new Error(`${what}: ${JSON.stringify(seen)} instead of ${JSON.stringify(wanted)}`)
    }
    await sleep(50)
  }
}

function same(what, seen, wanted) {
  const say = value => JSON.stringify(value)?.slice(0, 300)
  assert.deepEqual(seen, wanted, `${what}: ${say(seen)} instead of ${say(wanted)}`)
}

async function failureOf(what, promise) {
  try {
    await promise
  } catch (failure) {
    return failure
  }
  throw new Error(`${what} succeeded`)
}

// App is what a scenario works with; close ends all that it has opened.
class App {
  constructor(stack, name) {
    this.stack = stack
    this.name = name
    this.opened = []
    this.written = new Map() // how often a topic has been read, and so has one more record in each partition
  }

  async start(client) {
    this.opened.push(client)
    await client.connect()
    return client
  }

  async close() {
    for (const client of this.opened.reverse()) {
      await client.disconnect().catch(failure => console.error(this.name, 'closing:', failure.message))
    }
  }

  id(suffix = '') {
    return `${this.stack.name}-${RUN}-${this.name}${suffix}`
  }

  async topic(suffix = '', numPartitions = 1, configEntries = []) {
    const topic = this.id(suffix)
    same('made', await this.admin.createTopics({ topics: [{ topic, numPartitions, replicationFactor: 1, configEntries }] }), true)
    await eventually('partitions', () => this.partitions(topic), numPartitions)
    return topic
  }

  async partitions(topic) {
    const found = await this.admin.fetchTopicMetadata({ topics: [topic] }).catch(failure => failure.message)
    return Array.isArray(found) ? found[0].partitions.length : found.topics?.[0].partitions.length ?? found
  }

  producer() {
    return this.start(this.stack.producer({ idempotent: true }))
  }

  transactional(suffix = '', transactionTimeout = 60000) {
    return this.start(this.stack.producer({ transactionalId: this.id(suffix), transactionTimeout }))
  }

  // Collects what a new group, or the one named, sees of a topic; `reached` waits until it has seen enough.
  async reader(topic, settings = {}) {
    const consumer = await this.start(this.stack.consumer({ groupId: this.id(`-${randomBytes(4).toString('hex')}`), ...settings }))
    await consumer.subscribe({ topic })
    const seen = []
    await consumer.run({
      eachMessage: async ({ partition, message }) => void seen.push([partition, message.value.toString()]),
    })
    const reached = async (what, enough) => {
      const until = Date.now() + WAIT_MS
      while (!enough(seen)) {
        if (Date.now() > until) throw new Error(`${what}: ${seen.length} records after ${WAIT_MS} ms`)
        await sleep(10)
      }
    }
    return { consumer, seen, reached }
  }

  // All that a reader sees, a list for each partition; records written behind it tell where it ends.
  async read(topic, { partitions = 1, ...settings } = {}) {
    const outside = await this.producer()
    await outside.send({ topic, messages: numbers(0, partitions).map(n => ({ value: LAST, partition: Number(n) })) })
    const reader = await this.reader(topic, settings)
    const ends = this.written.get(topic) ?? 0
    this.written.set(topic, ends + 1)
    await reader.reached('end', seen => seen.filter(([, value]) => value === LAST).length === partitions * (ends + 1))
    const lists = numbers(0, partitions).map(n => reader.seen.filter(([partition]) => partition === Number(n)))
    return lists.map(list => list.map(([, value]) => value).filter(value => value !== LAST))
  }
}

const send = (producer, topic, values, partition = 0) =>
  producer.send({ topic, messages: values.map(value => ({ value, partition })) })

// Two topics, three partitions each, one transaction over all of them at a time.
async function commit(app) {
  const topics = [await app.topic('-a', 3), await app.topic('-b', 3)]
  const producer = await app.transactional()
  const wanted = [[], [], []]
  for (let turn = 0; turn < 10; turn++) {
    const transaction = await producer.transaction()
    for (const partition of [0, 1, 2]) {
      const values = numbers(0, 10).map(n => `${turn}/${partition}/${n}`)
      wanted[partition].push(...values)
      for (const topic of topics) await send(transaction, topic, values, partition)
    }
    await transaction.commit()
  }
  for (const topic of topics) same('committed records', await app.read(topic, { partitions: 3 }), wanted)
  return '600 records in 10 transactions over 6 partitions'
}

// Transactions of three producers lie across each other; about half are aborted. Cases C-03, C-06, C-10.
const abort = app => interleave(app, [[0, 1, 2]])

// The same, ended in another order than begun. kafkajs expects the list of aborted transactions in the order of their
// first offsets. Apache Kafka gives it in the order of their ends, so that kafkajs shows aborted records there.
const crossed = app => interleave(app, [[0, 1, 2], [2, 0, 1], [1, 2, 0]])

async function interleave(app, orders) {
  const topic = await app.topic()
  const producers = [await app.transactional('-0'), await app.transactional('-1'), await app.transactional('-2')]
  const log = []
  const committed = new Set()
  for (let turn = 0; turn < 8; turn++) {
    const transactions = []
    for (const producer of producers) transactions.push(await producer.transaction())
    for (const part of [0, 1]) {
      for (const n of [0, 1, 2]) {
        const values = numbers(0, 3).map(m => `${turn}/${n}/${part}/${m}`)
        await send(transactions[n], topic, values)
        log.push(...values)
      }
    }
    for (const n of orders[turn % orders.length]) {
      if ((turn * 5 + n * 3) % 4 < 2) {
        await transactions[n].commit()
        committed.add(`${turn}/${n}`)
      } else {
        await transactions[n].abort()
      }
    }
  }
  const kept = log.filter(value => committed.has(value.split('/', 2).join('/')))
  same('committed records', await app.read(topic), [kept])
  same('all records', await app.read(topic, { readUncommitted: true }), [log])
  return `24 transactions, ${log.length - kept.length} of ${log.length} records unseen`
}

// Reads, doubles and writes; each third transaction is aborted at first. Case C-14.
async function offsets(app) {
  const source = await app.topic('-in')
  const target = await app.topic('-out')
  const groupId = app.id()
  await send(await app.producer(), source, numbers(0, 100))
  const producer = await app.transactional()
  const { consumer, seen, reached } = await app.reader(source, { groupId })
  const stored = async () => {
    const [{ partitions }] = await app.admin.fetchOffsets({ groupId, topics: [source] })
    return Number(partitions.find(({ partition }) => partition === 0)?.offset ?? -1)
  }
  let turns = 0
  for (let done = 0; done < 100;) {
    await reached('input', () => seen.length >= done + 10)
    const transaction = await producer.transaction()
    await send(transaction, target, seen.slice(done, done + 10).map(([, value]) => String(2 * Number(value))))
    const topics = [{ topic: source, partitions: [{ partition: 0, offset: String(done + 10) }] }]
    await app.stack.sendOffsets(transaction, { consumer, groupId, topics })
    if (++turns % 3 === 0) {
      await transaction.abort()
    } else {
      await transaction.commit()
      done += 10
    }
    await eventually('offset of the group', stored, done === 0 ? -1 : done)
  }
  same('results', await app.read(target), [numbers(0, 200, 2)])
  return `100 records in ${turns} transactions`
}

// An open transaction holds a waiting reader back, and its commit wakes it. Cases C-02, C-08.
async function isolation(app) {
  const topic = await app.topic()
  const outside = await app.producer()
  const producer = await app.transactional()
  await send(outside, topic, ['before'])
  const transaction = await producer.transaction()
  await send(transaction, topic, ['inside'])
  await send(outside, topic, ['behind'])
  const all = await app.reader(topic, { readUncommitted: true })
  const waiting = await app.reader(topic)
  await all.reached('all records', seen => seen.length === 3)
  await waiting.reached('committed records', seen => seen.length > 0)
  await sleep(1000)
  same('records while open', waiting.seen, [[0, 'before']])
  await transaction.commit()
  const began = Date.now()
  await waiting.reached('records after the commit', seen => seen.length >= 3)
  const wanted = ['before', 'inside', 'behind'].map(value => [0, value])
  same('committed records', waiting.seen, wanted)
  same('all records', all.seen, wanted)
  return `woken ${Date.now() - began} ms after the commit`
}

// The second owner of an id aborts the first one's transaction. Cases C-13, C-29.
async function fencing(app) {
  const topic = await app.topic()
  const first = await (await app.transactional()).transaction()
  await send(first, topic, ['first'])
  const second = await (await app.transactional()).transaction()
  const refusal = app.stack.fenced(await failureOf('commit of the first', first.commit()))
  await send(second, topic, ['second'])
  await second.commit()
  same('committed records', await app.read(topic), [['second']])
  same('all records', await app.read(topic, { readUncommitted: true }), [['first', 'second']])
  return refusal
}

// The broker aborts what was left open, so that a reader gets to what lies behind; its producer is fenced. Cases C-12, C-18.
async function timeout(app) {
  const topic = await app.topic()
  const transaction = await (await app.transactional('', 2000)).transaction()
  await send(transaction, topic, ['late'])
  const began = Date.now()
  same('committed records', await app.read(topic), [[]])
  const took = Date.now() - began
  assert(took > 1500, `aborted early, after ${took} ms`)
  const refusal = app.stack.fenced(await failureOf('commit', transaction.commit()))
  return `seen past after ${(took / 1000).toFixed(1)} s of 2; ${refusal}`
}

// The network fails while answers are awaited, so batches are sent again. Case C-61.
async function idempotence(app) {
  const topic = await app.topic('', 3)
  const { producer, disturb, failures, able } = app.stack.unreliable()
  await app.start(producer)
  for (let n = 0; n < 3000; n += 30) {
    const messages = numbers(n, n + 30).map(value => ({ value, partition: Number(value) % 3 }))
    await Promise.all([producer.send({ topic, messages }), disturb(n)])
  }
  const wanted = [0, 1, 2].map(partition => numbers(partition, 3000, 3))
  same('records', await app.read(topic, { partitions: 3 }), wanted)
  assert.equal(failures() > 0, able, 'something has failed')
  return `3000 records, ${failures()} failures of the network`
}

const SCENARIOS = { commit, abort, crossed, offsets, isolation, fencing, timeout, idempotence }

async function play(stack, name, scene) {
  const app = new App(stack, name)
  try {
    app.admin = await app.start(stack.admin())
    const late = sleep(SCENARIO_MS, null, { ref: false }).then(() => {
      throw new Error(`not done after ${SCENARIO_MS} ms`)
    })
    const figures = await Promise.race([scene(app), late])
    console.log(`pass ${name} ${figures}`)
  } catch (failure) {
    console.log(`FAIL ${name} ${String(failure.message).split(/\s+/).join(' ').slice(0, 400)}`)
    console.error(failure)
  }
  await app.close()
}

// Plays all scenarios, or those that the command line names; a stack may have `more`.
async function main(stack) {
  for (const version of stack.versions) console.log(`version ${version}`)
  const named = process.argv.slice(2)
  for (const [name, scene] of Object.entries({ ...SCENARIOS, ...stack.more })) {
    if (named.length === 0 || named.includes(name)) await play(stack, name, scene)
  }
  console.log('end')
  process.exit(0)
}

module.exports = { main, send, same, eventually, failureOf, numbers }
