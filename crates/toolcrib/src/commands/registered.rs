//! How commands reach registered tools: in the store right here, or through the crib that serves.

use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::reach::{Reach, path_safe};
use crate::failure::Failure;
use crate::open::Opened;
use crate::registrar::{By, Registrar};
use crate::wire::{CustomToolCreate, CustomToolUpdate, CustomToolView, ValidationView};

impl Reach {
    pub async fn register(&self, create: &CustomToolCreate) -> Result<CustomToolView, Failure> {
        match self {
            Reach::Here(opened, _) => {
                let kept = here(opened).create(map(create), By::Owner).await?;
                let mut view = CustomToolView::from(kept.tool);
                view.warnings = kept.warnings;
                Ok(view)
            }
            Reach::There(there) => there.post("/custom-tools", create).await,
        }
    }

    pub async fn change_registered(
        &self,
        name: &str,
        update: &CustomToolUpdate,
    ) -> Result<CustomToolView, Failure> {
        match self {
            Reach::Here(opened, _) => {
                let kept = here(opened).change(name, map(update), By::Owner).await?;
                let mut view = CustomToolView::from(kept.tool);
                view.warnings = kept.warnings;
                Ok(view)
            }
            Reach::There(there) => {
                let path = format!("/custom-tools/{}", path_safe(name)?);
                there.patch(&path, update).await
            }
        }
    }

    pub async fn unregister(&self, name: &str) -> Result<(), Failure> {
        match self {
            Reach::Here(opened, _) => Ok(here(opened).remove(name).await?),
            Reach::There(there) => {
                there
                    .delete(&format!("/custom-tools/{}", path_safe(name)?))
                    .await
            }
        }
    }

    pub async fn validate(&self, name: &str) -> Result<ValidationView, Failure> {
        match self {
            Reach::Here(opened, _) => Ok(here(opened).validate(name).await?.into()),
            Reach::There(there) => {
                let path = format!("/custom-tools/{}/validate", path_safe(name)?);
                there
                    .post(&path, &Value::Object(serde_json::Map::new()))
                    .await
            }
        }
    }
}

/// The command ends with its answer, so nobody has to be told of the change but through the store.
fn here(opened: &Opened) -> Registrar {
    Registrar::new(opened, Arc::new(OnceLock::new()))
}

fn map(body: &impl serde::Serialize) -> serde_json::Map<String, Value> {
    match serde_json::to_value(body) {
        Ok(Value::Object(map)) => map,
        _ => serde_json::Map::new(),
    }
}
