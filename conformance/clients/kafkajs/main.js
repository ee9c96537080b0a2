'use strict'

const net = require('node:net')
const { AssertionError } = require('node:assert/strict')
const { Kafka, logLevel } = require('kafkajs')
const { main, send, same, eventually, failureOf, numbers } = require('./scenarios.js')

const settings = {
  brokers: [process.env.BOOTSTRAP],
  logLevel: logLevel.NOTHING,
  retry: { initialRetryTime: 50, retries: 20 },
}
const kafka = new Kafka(settings)

// A network that breaks a connection in place of each 25th answer.
function unreliable() {
  let answers = 0
  let cuts = 0
  const socketFactory = ({ host, port, onConnect }) => {
    const socket = net.connect({ host, port }, onConnect)
    const emit = socket.emit
    socket.emit = (event, ...values) => {
      if (event !== 'data' || ++answers % 25 !== 0) return emit.call(socket, event, ...values)
      cuts++
      socket.destroy(new Error('the connection broke'))
      return true
    }
    return socket
  }
  const producer = new Kafka({ ...settings, socketFactory }).producer({ idempotent: true, maxInFlightRequests: 1 })
  return { producer, disturb: () => {}, failures: () => cuts, able: true }
}

const TOPIC = 2 // ResourceTypes.TOPIC of a config

// Topics, configs, partitions, groups and offsets from their making to their end. Cases C-90, C-91, C-92.
async function admin(app) {
  const topic = await app.topic('', 2, [{ name: 'retention.ms', value: '3600000' }])
  const again = await app.admin.createTopics({ topics: [{ topic, numPartitions: 2, replicationFactor: 1 }] })
  same('made twice', again, false)
  const retention = async () => {
    const asked = { resources: [{ type: TOPIC, name: topic, configNames: ['retention.ms'] }], includeSynonyms: false }
    const { resources } = await app.admin.describeConfigs(asked)
    return resources[0].configEntries[0].configValue
  }
  same('retention.ms', await retention(), '3600000')
  const configEntries = [{ name: 'retention.ms', value: '7200000' }]
  await app.admin.alterConfigs({ validateOnly: false, resources: [{ type: TOPIC, name: topic, configEntries }] })
  await eventually('retention.ms', retention, '7200000')
  await app.admin.createPartitions({ topicPartitions: [{ topic, count: 4 }] })
  await eventually('partitions', () => app.partitions(topic), 4)

  await send(await app.producer(), topic, numbers(0, 10))
  await app.admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '4' }] })
  const [first] = (await app.admin.fetchTopicOffsets(topic)).filter(({ partition }) => partition === 0)
  same('offsets', [first.low, first.high], ['4', '10'])

  const groupId = app.id()
  const member = await app.reader(topic, { groupId })
  await member.reached('records', seen => seen.length === 6)
  same('records left', member.seen.map(([, value]) => value), numbers(4, 10))
  await member.consumer.commitOffsets([{ topic, partition: 0, offset: '6' }])
  const { groups } = await app.admin.listGroups()
  same('listed', groups.filter(group => group.groupId === groupId), [{ groupId, protocolType: 'consumer' }])
  const described = (await app.admin.describeGroups([groupId])).groups[0]
  same('described', [described.state, described.members.length], ['Stable', 1])
  const used = await failureOf('deleting a group in use', app.admin.deleteGroups([groupId]))
  same('deleted while in use', used.groups?.map(({ error }) => error.type), ['NON_EMPTY_GROUP'])
  await member.consumer.disconnect()

  const stored = async () => (await app.admin.fetchOffsets({ groupId, topics: [topic] }))[0].partitions
  same('offset', (await stored()).find(({ partition }) => partition === 0).offset, '6')
  await app.admin.setOffsets({ groupId, topic, partitions: [{ partition: 0, offset: '5' }] })
  same('offset set back', (await stored()).find(({ partition }) => partition === 0).offset, '5')
  await app.admin.deleteGroups([groupId])
  const gone = await failureOf('deleting a group twice', app.admin.deleteGroups([groupId]))
  same('deleted twice', gone.groups?.map(({ error }) => error.type), ['GROUP_ID_NOT_FOUND'])

  await app.admin.deleteTopics({ topics: [topic] })
  await eventually('deleted', async () => (await app.admin.listTopics()).includes(topic), false)
  return 'topics, configs, partitions, records, groups, offsets'
}

main({
  name: 'kafkajs',
  versions: [`kafkajs ${require('kafkajs/package.json').version}`],
  admin: () => kafka.admin(),
  producer: given => kafka.producer({ maxInFlightRequests: 1, idempotent: true, ...given }),
  consumer: given => {
    const consumer = kafka.consumer({ maxWaitTimeInMs: 5000, ...given })
    const subscribe = ({ topic }) => consumer.subscribe({ topic, fromBeginning: true })
    return { ...consumer, subscribe, run: ({ eachMessage }) => consumer.run({ autoCommit: false, eachMessage }) }
  },
  sendOffsets: (transaction, { groupId, topics }) => transaction.sendOffsets({ consumerGroupId: groupId, topics }),
  fenced: failure => {
    if (['INVALID_PRODUCER_EPOCH', 'PRODUCER_FENCED'].includes(failure.type)) return failure.type
    throw new AssertionError({ message: `not fenced: ${failure.name} ${failure.type} ${failure.message}` })
  },
  unreliable,
  more: { admin },
})
