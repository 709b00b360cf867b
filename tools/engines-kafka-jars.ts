// The jars of a Kafka broker on Maven Central: group/artifact/version and SHA-256.

export const kafkaVersion = '4.3.1';

export const kafkaJars: Readonly<Record<string, string>> = {
  'org/apache/kafka/kafka_2.13/4.3.1':
    'b098abef5ff878e76f60cd6c559b9baa5663ccb1b55f2837558b22c329d32423',
  'org/apache/kafka/kafka-clients/4.3.1':
    '52501b7b47510c66f898871adaf6d2968ab7246561d44ced43643a8a587f0b36',
  'org/apache/kafka/kafka-server-common/4.3.1':
    'd7c719f749579a399011f0df7414de8a78f10f074a6122caa550fdb141351575',
  'org/apache/kafka/kafka-group-coordinator-api/4.3.1':
    'd81bc1a3739ff6c9b21815baae00022306342a16d3d94e6a2621201b9980a30d',
  'org/apache/kafka/kafka-group-coordinator/4.3.1':
    '4ab56d002e1624185c874199e9e0ffb243dbeb9f68b4d0cadf48ce2f617a1126',
  'org/apache/kafka/kafka-transaction-coordinator/4.3.1':
    'c64aaa2a88d8fd382c4800204872917686e542043c7916c9e8797d939d8eb313',
  'org/apache/kafka/kafka-metadata/4.3.1':
    '4d73a96c6474a4ebdd67a1cee14da1a94cfd6bb9e6e252685ba5667d8ab7f898',
  'org/apache/kafka/kafka-storage-api/4.3.1':
    'bc2b22639fa554494461d101d599e01bae840d97c4f46e18fdf3d2fe41a47098',
  'org/apache/kafka/kafka-tools-api/4.3.1':
    'dcf6785742e0c8ab11a0fc09c62f1192e11e997dc629669a8db82aa40d933c31',
  'org/apache/kafka/kafka-raft/4.3.1':
    '46abbf89806dd22d848e997cdfb1431524cab4ec88e38a7d2806e20b24a70609',
  'org/apache/kafka/kafka-storage/4.3.1':
    '97e3facddd2914a58f28ec91ef35f8da69963eab3651196e97f487924f6dac98',
  'org/apache/kafka/kafka-server/4.3.1':
    '01d736599ec3b0cdbb0480c15219170b28cdae189785e7f0c6f1f26e528eaebc',
  'org/apache/kafka/kafka-coordinator-common/4.3.1':
    '66a86b8c89718216ffa72fe4e44b9d1bdf3472e4cb9200c36a0742a25febbdba',
  'org/apache/kafka/kafka-share-coordinator/4.3.1':
    '8ceeed7346127e652ea5c650b217890aaff14919f967d27fadce420745bd3066',
  'org/scala-lang/scala-library/2.13.18':
    '4e85d96ff7bc7dc627985523c3541b9917aaa08e956391380c42db21a2c4e5a0',
  'org/scala-lang/scala-reflect/2.13.18':
    '6935ff1982b2ac93d695f15aa66921be2f602921277afe002f018fd8c7d6e29b',
  'com/typesafe/scala-logging/scala-logging_2.13/3.9.6':
    '0ad0c3f4d89d538b3b6c300158555e266aa69cf1b5f6522aba8b5bad238eb994',
  'net/sourceforge/argparse4j/argparse4j/0.7.0':
    '65ceb669d88f63306c680f8088bbf765bbca72d288a61a03703000076c3d3f56',
  'com/fasterxml/jackson/core/jackson-databind/2.21.2':
    '8c982f01f148d805f0aaac2339011244757e0df7c6ff8951f2fa3f433b8ed849',
  'com/fasterxml/jackson/core/jackson-core/2.21.2':
    '12e8655b100267b44d0f14d01b1f5082a5105e616174dc4307be1a761e92407b',
  'com/fasterxml/jackson/core/jackson-annotations/2.21':
    '53ca085f4a150f703f49e1aabd935bd03b43e1ea3d55d135438292af22cef56b',
  'com/fasterxml/jackson/datatype/jackson-datatype-jdk8/2.21.2':
    'e581bbf3fc5622d16b57366dd41e10fc56921fb202879de2ef487f87dd9b30e7',
  'com/fasterxml/jackson/dataformat/jackson-dataformat-csv/2.21.2':
    '682f8c7977e02a42748426bf54946e32e52e2f80b84b6642801ab12bd541368a',
  'net/sf/jopt-simple/jopt-simple/5.0.4':
    'df26cc58f235f477db07f753ba5a3ab243ebe5789d9f89ecf68dd62ea9a66c28',
  'com/yammer/metrics/metrics-core/2.2.0':
    '6b7a14a6f34c10f8683f7b5e2f39df0f07b58c7dff0e468ebbc713905c46979c',
  'org/slf4j/slf4j-api/1.7.36': 'd3ef575e3e4979678dc01bf1dcce51021493b4d11fb7f1be8ad982877c16a1c0',
  'com/google/re2j/re2j/1.8': '7b52c72156dd7f98b3237a5b35c1d34fba381b21048c89208913ad80a45dfbd7',
  'org/pcollections/pcollections/4.0.2':
    '2bbeef5797a241300c4f7513cd546239629ed7deda4fc0c31df90bb95f5f13ef',
  'org/hdrhistogram/HdrHistogram/2.2.2':
    '22d1d4316c4ec13a68b559e98c8256d69071593731da96136640f864fa14fad8',
  'com/dynatrace/hash4j/hash4j/0.22.0':
    '23028a3fd006e530bf495f551083208187cafd8f80624d048eba56442f16a50e',
  'com/github/ben-manes/caffeine/caffeine/3.2.0':
    'ec411dfdf0c03f25218648ce89861630b71680e5858a9a7278ebac8e55cab3d7',
  'commons-validator/commons-validator/1.10.1':
    'ed74711a78d793ca37f6075e4a1e93d107233dfd20d0bb17e32bad88d38e56aa',
  'at/yawk/lz4/lz4-java/1.10.2': '252dabd586d22149a31661a8afc1a50747714eb1a298bd4a6e780c8c91a13866',
  'org/apache/logging/log4j/log4j-api/2.25.4':
    'c4b642a7f047275215de117e0e3847eb2c7711d84a0aa7433e7b3c096daf341d',
  'org/apache/logging/log4j/log4j-core/2.25.4':
    '10fee2c0485d54fa44ee75d314f6295508f7b932281873db61a91b88073200e6',
  'org/apache/logging/log4j/log4j-slf4j-impl/2.25.4':
    '7ac68a0afcc83d54f48d116d79370a43f0a2a6b71b5c1d6dda943bb6a95ddbaa',
};
