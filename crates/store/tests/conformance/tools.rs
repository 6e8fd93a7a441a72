//! Registered tools: every column, one name once, pages, and updates that overwrite nobody.

use serde_json::{Map, json};
use toolcrib_core::store::{
    CustomTool, RegisteredHealth, RegisteredStatus, Registrations, StoreError,
};

use crate::support::Site;

fn full_tool(name: &str) -> CustomTool {
    let mut tool = CustomTool::new(name, "python3");
    tool.description = "Looks up the weather ☂".to_owned();
    tool.version = "1.2.0".to_owned();
    tool.args = vec!["./tool.py".to_owned(), "a \"b\" 'c'".to_owned()];
    tool.working_dir = Some("/srv/tools".to_owned());
    tool.env
        .0
        .insert("KEY".to_owned(), "secret://weather\0".to_owned());
    tool.input_schema = json!({"type": "object", "properties": {"b": {}, "a": {"type": "string"}}});
    tool.output_schema = Some(json!({"type": "object"}));
    tool.timeout_ms = 10_000;
    tool.max_retries = 3;
    tool.retry_delay_ms = 7;
    tool.pool_size = 4;
    tool.keep_alive = false;
    tool.status = RegisteredStatus::Active;
    tool.error_message = Some("none".to_owned());
    tool.tags = vec!["weather".to_owned()];
    tool.metadata = Map::from_iter([("owner".to_owned(), json!({"n": 1.5}))]);
    tool.annotations = Some(json!({"readOnlyHint": true}));
    tool.permissions = Some(json!({"canNetwork": true}));
    tool.sandbox = Some(json!({"maxMemoryMB": 64}));
    tool.aliases = vec!["wetter".to_owned()];
    tool.content_hash = "abc".to_owned();
    tool
}

pub async fn a_registration_reads_back_column_by_column(site: Site) {
    let store = site.open().await;
    let made = store
        .custom_tools()
        .create(full_tool("weather"))
        .await
        .unwrap();
    assert!(!made.id.is_empty() && made.created_ms > 0 && made.revision > 0);
    let mut expected = full_tool("weather");
    expected.id.clone_from(&made.id);
    (expected.created_ms, expected.updated_ms) = (made.created_ms, made.created_ms);
    expected.revision = made.revision;
    assert_eq!(made, expected);
    assert_eq!(
        store.custom_tools().get("weather").await.unwrap(),
        Some(expected.clone())
    );
    store.close().await;
    let store = site.open().await;
    assert_eq!(
        store.custom_tools().get("weather").await.unwrap(),
        Some(expected)
    );

    let plain = store
        .custom_tools()
        .create(CustomTool::new("plain", "x"))
        .await
        .unwrap();
    let read = store.custom_tools().get("plain").await.unwrap().unwrap();
    assert_eq!(read, plain);
    assert_eq!(
        (read.timeout_ms, read.max_retries, read.retry_delay_ms),
        (30_000, 0, 1_000)
    );
    assert_eq!((read.pool_size, read.keep_alive), (1, true));
    assert_eq!(
        (read.status, read.health),
        (RegisteredStatus::Inactive, RegisteredHealth::Unknown)
    );
    assert!(store.custom_tools().delete("plain").await.unwrap());
    assert!(!store.custom_tools().delete("plain").await.unwrap());
    assert_eq!(store.custom_tools().get("plain").await.unwrap(), None);
    store.check().await.unwrap();
}

pub async fn a_name_is_taken_once(site: Site) {
    let store = site.open().await;
    let tools = store.custom_tools();
    let first = tools.create(full_tool("a")).await.unwrap();
    let before = store.revisions().await.unwrap();
    let error = tools
        .create(CustomTool::new("a", "other"))
        .await
        .unwrap_err();
    assert!(
        matches!(&error, StoreError::Taken { name, .. } if name == "a"),
        "{error}"
    );
    assert!(!error.is_trouble());
    assert_eq!(tools.get("a").await.unwrap(), Some(first));
    assert_eq!(store.revisions().await.unwrap(), before);
    let racers = (0..8).map(|n| {
        let tools = tools.clone();
        tokio::spawn(async move {
            tools
                .create(CustomTool::new("b", &format!("c{n}")))
                .await
                .is_ok()
        })
    });
    let mut won = 0;
    for racer in racers.collect::<Vec<_>>() {
        won += u32::from(racer.await.unwrap());
    }
    assert_eq!(won, 1);
}

pub async fn lists_are_by_name_and_by_page(site: Site) {
    let store = site.open().await;
    let tools = store.custom_tools();
    for name in ["b", "B", "a-c", "a_b", "ab", "_z", "A"] {
        let mut tool = CustomTool::new(name, "x");
        if name.len() == 1 {
            tool.status = RegisteredStatus::Active;
        }
        tools.create(tool).await.unwrap();
    }
    let names = |page: toolcrib_store::ToolPage| -> Vec<String> {
        page.tools.into_iter().map(|tool| tool.name).collect()
    };
    let all = tools.list(None, 0, 100).await.unwrap();
    assert_eq!(all.total, 7);
    assert_eq!(names(all), ["A", "B", "_z", "a-c", "a_b", "ab", "b"]);
    let page = tools.list(None, 2, 3).await.unwrap();
    assert_eq!(page.total, 7);
    assert_eq!(names(page), ["_z", "a-c", "a_b"]);
    let active = tools
        .list(Some(RegisteredStatus::Active), 0, 2)
        .await
        .unwrap();
    assert_eq!(active.total, 3);
    assert_eq!(names(active), ["A", "B"]);
    assert!(tools.list(None, 50, 5).await.unwrap().tools.is_empty());
    let active: Vec<_> = Registrations::active(&tools).await.unwrap();
    assert_eq!(active.len(), 3);
}

pub async fn an_update_does_not_overwrite_another(site: Site) {
    let store = site.open().await;
    let tools = store.custom_tools();
    let first = tools.create(CustomTool::new("a", "x")).await.unwrap();
    let mut mine = full_tool("a");
    mine.id.clone_from(&first.id);
    mine.revision = first.revision;
    mine.created_ms = 5;
    let updated = tools.update(mine.clone()).await.unwrap();
    assert!(updated.revision > first.revision && updated.updated_ms >= first.created_ms);
    assert_eq!(updated.created_ms, first.created_ms);
    assert_eq!(updated.description, mine.description);
    assert_eq!(tools.get("a").await.unwrap(), Some(updated));
    // `mine` was made from the first one, and that is no longer the one.
    let error = tools.update(mine.clone()).await.unwrap_err();
    assert!(matches!(error, StoreError::Changed { .. }), "{error}");
    tools.delete("a").await.unwrap();
    let error = tools.update(mine).await.unwrap_err();
    assert!(matches!(error, StoreError::Missing { .. }), "{error}");
}

pub async fn status_and_health_are_noted(site: Site) {
    let store = site.open().await;
    let tools = store.custom_tools();
    let made = tools.create(CustomTool::new("a", "x")).await.unwrap();
    let failed = tools
        .set_status("a", RegisteredStatus::Error, Some("it died"))
        .await
        .unwrap();
    assert_eq!(failed.status, RegisteredStatus::Error);
    assert_eq!(failed.error_message.as_deref(), Some("it died"));
    assert!(failed.revision > made.revision);
    let before = store.revisions().await.unwrap();
    tools
        .set_health("a", RegisteredHealth::Unhealthy, 77)
        .await
        .unwrap();
    let read = tools.get("a").await.unwrap().unwrap();
    assert_eq!(
        (read.health, read.last_health_check_ms),
        (RegisteredHealth::Unhealthy, Some(77))
    );
    assert_eq!(read.revision, failed.revision);
    assert_eq!(store.revisions().await.unwrap(), before);
    // A health check in between does not stand in an update's way, and is not undone by it.
    let updated = tools.update(failed).await.unwrap();
    assert_eq!(updated.health, RegisteredHealth::Unhealthy);
    for error in [
        tools
            .set_status("b", RegisteredStatus::Active, None)
            .await
            .unwrap_err(),
        tools
            .set_health("b", RegisteredHealth::Healthy, 1)
            .await
            .unwrap_err(),
    ] {
        assert!(matches!(error, StoreError::Missing { .. }), "{error}");
    }
}

pub async fn what_a_store_cannot_hold_is_refused(site: Site) {
    let store = site.open().await;
    let mut tool = CustomTool::new("a", "x");
    tool.description = "a\0b".to_owned();
    let error = store.custom_tools().create(tool).await.unwrap_err();
    assert!(matches!(error, StoreError::Unfit { .. }), "{error}");
    assert_eq!(store.custom_tools().get("a\0").await.unwrap_err(), error);
    assert_eq!(store.custom_tools().get("' OR 1=1 --").await.unwrap(), None);
    // The refused write left the writer fit for the next one.
    store
        .custom_tools()
        .create(CustomTool::new("a", "x"))
        .await
        .unwrap();
}
