import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.header.Headers;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.storage.HeaderConverter;
import org.apache.kafka.connect.storage.SimpleHeaderConverter;
import org.apache.kafka.connect.transforms.Transformation;
import org.apache.kafka.connect.transforms.predicates.Predicate;

/**
 * What Java's own classes answer: a case per line of standard input, its answers per line of standard output.
 *
 * {"chain": [{"type", "options", "predicate": {"type", "options"}, "negate"}], "records": [{"topic", "key", "value", ...}]}
 * {"converter": class, "key": bool, "options": {...}, "values": [{"schema", "payload"}, ...]}
 */
public class Answers {
    static final ObjectMapper JSON = new ObjectMapper();
    static final JsonConverter PLAIN = new JsonConverter();
    static final SimpleHeaderConverter SIMPLE = new SimpleHeaderConverter();

    public static void main(String[] args) throws Exception {
        PLAIN.configure(Map.of("schemas.enable", "true", "replace.null.with.default", "false"), false);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, true, "UTF-8");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode given = JSON.readTree(line);
            out.println(JSON.writeValueAsString(given.has("converter") ? converted(given) : transformed(given)));
        }
    }

    static Map<String, String> texts(JsonNode node) {
        Map<String, String> found = new HashMap<>();
        if (node != null) node.fields().forEachRemaining(each -> found.put(each.getKey(), each.getValue().asText()));
        return found;
    }

    static SchemaAndValue read(JsonNode node) throws Exception {
        if (node == null || node.isNull()) return SchemaAndValue.NULL;
        return PLAIN.toConnectData("t", JSON.writeValueAsBytes(node));
    }

    static ObjectNode error(Throwable error) {
        ObjectNode node = JSON.createObjectNode();
        node.put("error", error.getClass().getSimpleName());
        node.put("message", String.valueOf(error.getMessage()));
        return node;
    }

    record Step(Transformation transform, Predicate predicate, boolean negate) {}

    @SuppressWarnings({"unchecked", "rawtypes"})
    static JsonNode transformed(JsonNode given) throws Exception {
        List<Step> steps = new ArrayList<>();
        try {
            for (JsonNode step : given.get("chain")) {
                Transformation made = (Transformation)
                    Class.forName(step.get("type").asText()).getConstructor().newInstance();
                made.configure(texts(step.get("options")));
                Predicate predicate = null;
                if (step.has("predicate")) {
                    JsonNode named = step.get("predicate");
                    predicate = (Predicate)
                        Class.forName(named.get("type").asText()).getConstructor().newInstance();
                    predicate.configure(texts(named.get("options")));
                }
                steps.add(new Step(made, predicate, step.path("negate").asBoolean(false)));
            }
        } catch (Exception refused) {
            return error(refused);
        }
        ArrayNode answers = JSON.createArrayNode();
        for (JsonNode record : given.get("records")) answers.add(answer(steps, record));
        return answers;
    }

    @SuppressWarnings("rawtypes")
    static JsonNode answer(List<Step> steps, JsonNode given) throws Exception {
        SchemaAndValue key = read(given.get("key")), value = read(given.get("value"));
        Headers headers = new ConnectHeaders();
        for (JsonNode header : given.path("headers")) headers.add(header.get(0).asText(), read(header.get(1)));
        String topic = given.get("topic").asText();
        Integer partition = given.hasNonNull("partition") ? given.get("partition").asInt() : null;
        Long timestamp = given.hasNonNull("timestamp") ? given.get("timestamp").asLong() : null;
        ConnectRecord record;
        if (given.hasNonNull("offset"))
            record = new SinkRecord(topic, partition == null ? 0 : partition, key.schema(), key.value(), value.schema(),
                value.value(), given.get("offset").asLong(), timestamp, TimestampType.CREATE_TIME, headers);
        else
            record = new SourceRecord(Map.of(), Map.of(), topic, partition, key.schema(), key.value(), value.schema(),
                value.value(), timestamp, headers);
        boolean transformed = false;
        try {
            for (Step step : steps) {
                if (step.predicate() != null && step.predicate().test(record) == step.negate()) continue;
                record = (ConnectRecord) step.transform().apply(record);
                if (record == null) return JSON.createObjectNode().put("dropped", true);
            }
            transformed = true;
            ObjectNode found = JSON.createObjectNode();
            found.put("topic", record.topic());
            put(found, "key", PLAIN.fromConnectData("t", record.keySchema(), record.key()));
            put(found, "value", PLAIN.fromConnectData("t", record.valueSchema(), record.value()));
            ArrayNode made = found.putArray("headers");
            for (Object each : record.headers()) {
                Header header = (Header) each;
                ArrayNode pair = made.addArray();
                pair.add(header.key());
                add(pair, SIMPLE.fromConnectHeader("t", header.key(), header.schema(), header.value()));
                add(pair, PLAIN.fromConnectData("t", header.schema(), header.value()));
            }
            return found;
        } catch (Exception failed) {
            return transformed ? error(failed).put("written", false) : error(failed);
        }
    }

    static void put(ObjectNode node, String name, byte[] bytes) {
        node.put(name, bytes == null ? null : new String(bytes, StandardCharsets.UTF_8));
    }

    static void add(ArrayNode node, byte[] bytes) {
        node.add(bytes == null ? null : new String(bytes, StandardCharsets.UTF_8));
    }

    static JsonNode converted(JsonNode given) throws Exception {
        Object made;
        try {
            made = Class.forName(given.get("converter").asText()).getConstructor().newInstance();
            Map<String, String> options = texts(given.get("options"));
            if (given.path("header").asBoolean(false)) {
                options.put("converter.type", "header");
                ((HeaderConverter) made).configure(options);
            } else {
                ((Converter) made).configure(options, given.path("key").asBoolean(false));
            }
        } catch (Exception refused) {
            return error(refused);
        }
        ArrayNode answers = JSON.createArrayNode();
        for (JsonNode each : given.get("values")) {
            SchemaAndValue value = read(each);
            try {
                byte[] bytes = given.path("header").asBoolean(false)
                    ? ((HeaderConverter) made).fromConnectHeader("t", "h", value.schema(), value.value())
                    : ((Converter) made).fromConnectData("t", value.schema(), value.value());
                if (bytes == null) answers.addNull();
                else answers.add(java.util.HexFormat.of().formatHex(bytes));
            } catch (Exception failed) {
                answers.add(error(failed));
            }
        }
        return answers;
    }
}
