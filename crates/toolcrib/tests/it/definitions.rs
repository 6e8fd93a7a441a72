//! The catalog in the forms of the vendors.

use serde_json::{Value, json};

use crate::support::{World, shell_tool};

#[tokio::test]
async fn every_vendor_gets_its_form() {
    let world = World::trusted();
    let properties = json!({"what": {"type": "string", "description": "What to say"}});
    world.write_tool(
        "say.json",
        shell_tool("say", "echo {what}", properties.clone()),
    );
    let crib = world.serve();
    let say = async |format: &str| -> Value {
        let (status, list) = crib.get(&format!("/tools/definitions{format}")).await;
        assert_eq!(status, 200, "{list}");
        let tools = list["tools"].as_array().unwrap().clone();
        assert_eq!(tools.len(), crib.names().await.len());
        let name = |tool: &Value| {
            tool["name"].as_str().or(tool["function"]["name"].as_str()) == Some("say")
        };
        tools.into_iter().find(name).unwrap()
    };
    let schema = json!({"type": "object", "properties": properties});
    let description = "A tool of a test";
    assert_eq!(
        say("?format=openai").await,
        json!({"type": "function", "function": {"name": "say", "description": description, "parameters": schema}})
    );
    assert_eq!(
        say("?format=anthropic").await,
        json!({"name": "say", "description": description, "input_schema": schema})
    );
    let mcp = say("?format=mcp").await;
    assert_eq!(
        (&mcp["name"], &mcp["inputSchema"]),
        (&json!("say"), &schema)
    );
    assert_eq!(say("").await, mcp, "MCP's is the default");
    for wrong in ["?format=gemini", "?form=mcp", "?format="] {
        let (status, said) = crib.get(&format!("/tools/definitions{wrong}")).await;
        assert_eq!(
            (status, &said["error"]["code"]),
            (400, &json!("bad_request")),
            "{wrong}"
        );
    }
}

#[tokio::test]
async fn what_waits_for_trust_is_not_defined() {
    let world = World::new();
    world.write_tool("say.json", shell_tool("say", "echo", json!({})));
    let crib = world.serve();
    assert!(crib.names().await.contains(&"say".to_owned()));
    let (_, list) = crib.get("/tools/definitions?format=anthropic").await;
    assert!(!list.to_string().contains("\"say\""), "{list}");
}
