import java.io.File;
import java.nio.charset.StandardCharsets;

import org.deidentifier.arx.ARXAnonymizer;
import org.deidentifier.arx.ARXConfiguration;
import org.deidentifier.arx.ARXResult;
import org.deidentifier.arx.AttributeType;
import org.deidentifier.arx.AttributeType.Hierarchy;
import org.deidentifier.arx.Data;
import org.deidentifier.arx.criteria.KAnonymity;

/** Adult at k = 10 without suppression by ARX: arguments are the folder of adult.csv with its hierarchies, and the file to write. */
public class Adult {
    private static final String[] QIDS = {
        "sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation"
    };

    public static void main(String[] arguments) throws Exception {
        File folder = new File(arguments[0]);
        Data data = Data.create(new File(folder, "adult.csv"), StandardCharsets.UTF_8, ';');
        for (String qid : QIDS) {
            File levels = new File(folder, "hierarchy_" + qid + ".csv");
            data.getDefinition().setAttributeType(qid, Hierarchy.create(levels, StandardCharsets.UTF_8, ';'));
        }
        data.getDefinition().setAttributeType("salary-class", AttributeType.INSENSITIVE_ATTRIBUTE);
        ARXConfiguration configuration = ARXConfiguration.create();
        configuration.addPrivacyModel(new KAnonymity(10));
        configuration.setSuppressionLimit(0d);
        ARXResult result = new ARXAnonymizer().anonymize(data, configuration);
        result.getOutput().save(new File(arguments[1]), ';');
    }
}
