'use strict'

const { AssertionError } = require('node:assert/strict')
const { setTimeout: sleep } = require('node:timers/promises')
const { librdkafkaVersion, KafkaJS } = require('@confluentinc/kafka-javascript')
const { main, send, same, eventually, failureOf, numbers } = require('./scenarios.js')

const { Kafka, logLevel } = KafkaJS
const kafka = new Kafka({ kafkaJS: { brokers: [process.env.BOOTSTRAP], logLevel: logLevel.NOTHING } })

// What the interface does not have is set in librdkafka's own words.
const producer = (given, settings = {}) =>
  kafka.producer({ kafkaJS: { idempotent: true, ...given }, 'allow.auto.create.topics': false, ...settings })

// A broker that hangs for longer than the client waits, now and then: it connects anew.
function unreliable() {
  const broker = Number(process.env.BROKER_PID)
  let hung = 0
  const disturb = async n => {
    if (!broker || n % 900 !== 600) return
    process.kill(broker, 'SIGSTOP')
    await sleep(1200)
    process.kill(broker, 'SIGCONT')
    hung++
  }
  const impatient = { 'socket.timeout.ms': 500, 'socket.max.fails': 1, 'topic.metadata.refresh.interval.ms': 50 }
  return { producer: producer({}, impatient), disturb, failures: () => hung, able: broker > 0 }
}

// Topics, records, groups and offsets; configs are not in this admin client. Cases C-90, C-91.
async function admin(app) {
  const topic = await app.topic('', 2, [{ name: 'retention.ms', value: '3600000' }])
  const again = await app.admin.createTopics({ topics: [{ topic, numPartitions: 2, replicationFactor: 1 }] })
  same('made twice', again, false)
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
  same('listed', groups.filter(group => group.groupId === groupId).map(group => group.protocolType), ['consumer'])
  const described = (await app.admin.describeGroups([groupId])).groups[0]
  same('described', [described.protocolType, described.members.length], ['consumer', 1])
  const used = await failureOf('deleting a group in use', app.admin.deleteGroups([groupId]))
  same('deleted while in use', used.groups?.map(({ error }) => error.type), ['ERR_NON_EMPTY_GROUP'])
  await member.consumer.disconnect()

  const [{ partitions }] = await app.admin.fetchOffsets({ groupId, topics: [topic] })
  same('offset', partitions.find(({ partition }) => partition === 0).offset, '6')
  await app.admin.deleteGroups([groupId])
  const gone = await failureOf('deleting a group twice', app.admin.deleteGroups([groupId]))
  same('deleted twice', gone.groups?.map(({ error }) => error.type), ['ERR_GROUP_ID_NOT_FOUND'])
  await app.admin.deleteTopics({ topics: [topic] })
  await eventually('deleted', async () => (await app.admin.listTopics()).includes(topic), false)
  return 'topics, records, groups, offsets'
}

main({
  name: 'confluent-js',
  versions: [`confluent-kafka-javascript ${require('@confluentinc/kafka-javascript/package.json').version} librdkafka ${librdkafkaVersion}`],
  admin: () => kafka.admin(),
  producer: given => producer(given),
  consumer: given => kafka.consumer({ kafkaJS: { fromBeginning: true, autoCommit: false, maxWaitTimeInMs: 5000, ...given } }),
  sendOffsets: (transaction, { consumer, topics }) => transaction.sendOffsets({ consumer, topics }),
  fenced: failure => {
    if (['ERR__FENCED', 'ERR_INVALID_PRODUCER_EPOCH'].includes(failure.type)) return failure.type
    throw new AssertionError({ message: `not fenced: ${failure.name} ${failure.type} ${failure.message}` })
  },
  unreliable,
  more: { admin },
})
